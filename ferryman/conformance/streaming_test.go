package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCase138_UploadIsNotHeldBack(t *testing.T) {
	kib := strings.Repeat("k", 1<<10)
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, row := range [][3]string{
			{"Content-Length: 10240", kib, strings.Repeat(kib, 9)},
			{"Transfer-Encoding: chunked", "400\r\n" + kib + "\r\n", "2400\r\n" + strings.Repeat(kib, 9) + "\r\n0\r\n\r\n"},
			{"Transfer-Encoding: chunked", "2800\r\n" + kib, strings.Repeat(kib, 9) + "\r\n0\r\n\r\n"},
		} {
			c := r.dial(t)
			n := nonce()
			before := len(r.U[1].connections())
			c.send("POST / HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\n" + row[0] + "\r\n\r\n" + row[1])
			eventually(t, func() bool { return r.U[1].logged(n, kib) }, "1 KiB of %d does not arrive", before)
			c.send(row[2])
			require.Equal(t, n, c.want(t, "POST", 200).get("X-Nonce"))
			require.Equal(t, int64(10240), r.U[1].last(t).bodyLen)
			c.close()
		}
	})
}

// logged tells whether a connection's log holds all the parts, in order.
func (u *upstream) logged(parts ...string) bool {
	for _, c := range u.connections() {
		c.mu.Lock()
		rest, found := c.log, true
		for _, p := range parts {
			i := bytes.Index(rest, []byte(p))
			if i < 0 {
				found = false
				break
			}
			rest = rest[i+len(p):]
		}
		c.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// Cases 139 and 140: far less than a buffer, and sent in pieces.
func TestCase139And140_ResponseIsNotHeldBack(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, framing := range []string{"Content-Length: 50", "Transfer-Encoding: chunked", "Connection: close"} {
			goOn := make(chan struct{})
			r.U[1].play(func(c *uconn, q *message) bool {
				c.body(q)
				c.send("HTTP/1.1 200 OK\r\nX-U: x\r\n" + framing + "\r\n\r\n")
				for i := range 5 {
					<-goOn
					part := fmt.Sprintf("part %d....", i)[:10]
					if framing[0] == 'T' {
						part = "a\r\n" + part + "\r\n"
					}
					c.send(part)
				}
				if framing[0] == 'T' {
					c.send("0\r\n\r\n")
				}
				if framing == "Connection: close" {
					c.fin()
				}
				return framing != "Connection: close"
			})
			c := r.dial(t)
			c.send(request{}.String())
			_ = c.conn.SetReadDeadline(time.Now().Add(patience))
			head, err := c.w.responseHead("GET") // before the first byte of the body
			require.NoError(t, err)
			for i := range 5 {
				goOn <- struct{}{}
				want := fmt.Sprintf("part %d....", i)[:10]
				if head.framing == "chunked" {
					want = "a\r\n" + want + "\r\n"
				}
				got := make([]byte, len(want))
				_, err = io.ReadFull(c.w.br, got)
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
			if head.framing == "chunked" {
				end := make([]byte, 5)
				_, err = io.ReadFull(c.w.br, end)
				require.NoError(t, err)
				require.Equal(t, "0\r\n\r\n", string(end))
			}
			r.finals.Add(1)
			c.close()
		}
	})
}

// bufferMax bounds what may sit between two ends of which one does not read: the proxy's buffers and
// those of the kernel, which the rig keeps small at its own ends; the proxy's may grow to 32 MiB (tcp_rmem).
const bufferMax = 64 << 20

func TestCase141_ReaderThatStallsHoldsTheUpstreamBack(t *testing.T) {
	const offered = 1 << 30
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		block := strings.Repeat("x", 64<<10)
		var written atomic.Int64
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			c.body(q)
			_ = c.conn.SetWriteBuffer(64 << 10)
			c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n", offered))
			for n := 0; n < offered && c.send(block); n += len(block) {
				written.Add(int64(len(block)))
			}
			return false
		})
		const clients = 4
		for range clients {
			c := r.dialWith(t, clientTLS, 16<<10)
			c.send(request{}.String())
		}
		eventually(t, func() bool { return len(r.U[1].started()) == clients && written.Load() > clients*100<<10 }, "nothing is written")
		stalls(t, &written, clients*bufferMax)
	})
}

// stalls waits until a counter stands still, and asserts that it did so below a limit.
func stalls(t *testing.T, n *atomic.Int64, limit int64) {
	t.Helper()
	for last, same := int64(-1), 0; same < 10; pause(20 * time.Millisecond) {
		if now := n.Load(); now == last {
			same++
		} else {
			require.Less(t, now, limit, "buffered without a bound")
			last, same = now, 0
		}
	}
}

func TestCase142_UpstreamThatStallsHoldsTheUploadBack(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		stop := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			c.unrecorded()
			_ = c.conn.SetReadBuffer(64 << 10)
			<-stop
			c.reset()
			return false
		})
		c := r.dial(t)
		_ = c.tcp.SetWriteBuffer(64 << 10)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n")
		block := strings.Repeat("x", 64<<10)
		var written atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 16 << 10 {
				if _, err := io.WriteString(c.conn, block); err != nil {
					return
				}
				written.Add(int64(len(block)))
			}
		}()
		eventually(t, func() bool { return written.Load() > 100<<10 }, "nothing is taken")
		stalls(t, &written, bufferMax)
		close(stop)
		c.close()
		<-done
	})
}

var sizesOf144 = []int{0, 1, 2, 4095, 4096, 4097, 16383, 16384, 16385, 32767, 32768, 32769, 65535, 65536, 65537, 1 << 20}

func TestCase144_SizesAndSegments(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		g := rand.New(rand.NewPCG(144, 2))
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			if !c.body(q) {
				return false
			}
			if q.bodyLen%2 == 0 {
				return c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n", q.bodyLen), string(q.body))
			}
			half := len(q.body) / 2
			c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n")
			if half > 0 {
				c.send(fmt.Sprintf("%x\r\n", half), string(q.body[:half]), "\r\n")
			}
			return c.send(fmt.Sprintf("%X\r\n%s\r\n0\r\n\r\n", len(q.body)-half, q.body[half:]))
		})
		c := r.dial(t)
		for i := range scaled(80) {
			body := make([]byte, sizesOf144[i%len(sizesOf144)])
			for j := range body {
				body[j] = byte(g.Uint32())
			}
			q := request{m: "POST", body: string(body)}
			if g.IntN(2) == 0 && len(body) > 0 {
				q.body, q.chunks = "", []string{string(body[:len(body)/3]), string(body[len(body)/3:])}
				if len(body) < 3 {
					q.chunks = []string{string(body)}
				}
			}
			wait := c.sendAside(segments(g, q.String())...)
			resp, err := c.response("POST")
			require.NoError(t, err, "round %d, %d bytes in %d chunks; %v", i, len(body), len(q.chunks), c.writeErr)
			require.Equal(t, 200, resp.status, "round %d, %d bytes: %q", i, len(body), resp.body)
			wait()
			require.Equal(t, sha256.Sum256(body), resp.sum, "%d bytes", len(body))
			require.Equal(t, sha256.Sum256(body), r.U[1].last(t).sum, "%d bytes", len(body))
		}
	})
}

// segments cuts s at random places.
func segments(g *rand.Rand, s string) []string {
	var parts []string
	for len(s) > 0 {
		n := min(len(s), 1+g.IntN(1<<uint(4+g.IntN(15))))
		parts = append(parts, s[:n])
		s = s[n:]
	}
	return parts
}

func TestCase145_NoForeignByte(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			if !c.body(q) {
				return false
			}
			return c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nX-Nonce: %s\r\nContent-Length: %d\r\n\r\n", q.get("X-Nonce"), len(q.body)), string(q.body))
		})
		var wg sync.WaitGroup
		problems := make(chan error, 1000)
		for i := range 48 {
			c, err := r.tryDial(clientTLS, 0)
			require.NoError(t, err)
			wg.Go(func() {
				defer c.close()
				for round := range scaled(6) {
					q := request{m: "POST", nonce: nonce(), body: strings.Repeat(fmt.Sprintf("<%d.%d>", i, round), 1500)}
					c.send(q.String())
					resp, err := c.response("POST")
					if err != nil || string(resp.body) != q.body || resp.get("X-Nonce") != q.nonce {
						problems <- fmt.Errorf("client %d round %d: %v, %d bytes", i, round, err, len(resp.body))
						return
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for collecting := true; collecting; { // what is freed too early is overwritten soon
			select {
			case <-done:
				collecting = false
			case <-time.After(20 * time.Millisecond):
				runtime.GC()
			}
		}
		close(problems)
		for err := range problems {
			require.NoError(t, err)
		}
	})
}

func TestCase000_EchoDescribesTheRequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		resp, q := r.serves(t, request{m: "POST", path: "/api/x?y", body: "hello"}.String())
		var e echoed
		require.NoError(t, json.Unmarshal(resp.body, &e))
		require.Equal(t, "U2", e.Upstream)
		require.Equal(t, q.line, string(e.Line))
		require.Equal(t, int64(5), e.Length)
		h := sha256.New()
		h.Write([]byte("hello"))
		require.Equal(t, fmt.Sprintf("%x", h.Sum(nil)), e.SHA256)
	})
}
