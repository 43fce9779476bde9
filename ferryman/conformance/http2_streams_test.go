package conformance

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/config"
)

func TestCase184_ManyStreamsAtOnce(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			if !c.body(q) {
				return false
			}
			pause(time.Duration(rand.IntN(20)) * time.Millisecond)
			return c.send(describe(q))
		})
		h := r.dialH2(t)
		for range 2 {
			asked := map[uint32]string{}
			for range 250 {
				n := nonce()
				asked[h.ask("GET", "/", true, "x-nonce", n)] = n
			}
			for id, n := range asked {
				require.Equal(t, n, h.want(t, id, 200).final().get("x-nonce"))
			}
		}
	})
}

func TestCase184_TooManyStreamsAreRefused(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		goOn := make(chan struct{})
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			c.body(q)
			<-goOn
			return c.send(ok("done"))
		})
		h := r.dialH2(t)
		h.until(t, "settings", func() bool { return h.got[http2.SettingMaxConcurrentStreams] == 250 && h.acks == 1 })
		var ids []uint32
		for range 260 {
			ids = append(ids, h.ask("GET", "/", true))
		}
		for _, id := range ids[250:] {
			h.isReset(t, id, http2.ErrCodeRefusedStream)
		}
		r.U[1].awaitStarted(t, 250)
		close(goOn)
		for _, id := range ids[:250] {
			h.want(t, id, 200)
		}
		require.Len(t, r.U[1].started(), 250, "what was refused was not forwarded")
		h.alive(t)
	})
}

func TestCase143_OneStalledStreamStopsNoOther(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		h := r.dialH2(t, h2options{settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 10}}, manual: true})
		h.grant(0, 1<<30)
		big := strings.Repeat("x", 1<<20)
		r.U[2].playAlways(reply(ok(big)))
		r.U[3].playAlways(hang) // takes the head, and its socket's buffers of the body
		var stalled, uploads []uint32
		for range 20 {
			stalled = append(stalled, h.ask("GET", "/api", true))
		}
		r.U[3].playAlways(func(c *uconn, q *message) bool { <-c.ended; return false })
		for range 3 {
			id := h.ask("POST", "/api/v1", false)
			h.upload(t, id, strings.Repeat("x", 256<<10))
			uploads = append(uploads, id)
		}
		for _, id := range stalled {
			h.until(t, "the window to be used up", func() bool { return h.stream(id).n == 10 })
		}
		r.U[1].playAlways(reply(ok("0123456789")))
		for range 50 {
			require.Equal(t, int64(10), h.want(t, h.ask("GET", "/", true), 200).n)
		}
		for _, id := range uploads {
			h.rstStream(id, http2.ErrCodeCancel)
		}
		for _, id := range stalled {
			h.grant(id, 1<<20)
			require.Equal(t, int64(1<<20), h.want(t, id, 200).n)
		}
		for _, c := range r.U[3].connections() {
			c.close()
		}
	})
}

func TestCase186_SmallAndNegativeWindows(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		big := strings.Repeat("0123456789", 30000)
		r.U[1].playAlways(reply(ok(big)))
		for _, first := range []uint32{0, 1, 70000} {
			h := r.dialH2(t, h2options{settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: first}}, manual: true})
			id := h.ask("GET", "/", true)
			h.until(t, "what the window takes", func() bool {
				s := h.stream(id)
				return len(s.heads) == 1 && s.n == int64(min(first, 65535))
			})
			initial := func(n uint32) {
				h.write(func() error { return h.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n}) })
			}
			initial(first + 10)
			initial(0) // below zero where bytes were sent
			h.grant(0, 1<<30)
			h.grant(id, 10)
			initial(1 << 20)
			s := h.want(t, id, 200)
			require.Equal(t, big, string(s.data))
			h.close()
		}
	})
}

func TestCase187_UnknownFramesAreIgnored(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		id := h.ask("POST", "/", false)
		for typ := 0x0a; typ <= 0xff; typ += 7 {
			for _, stream := range []uint32{0, id, id + 100} {
				if typ == 0x10 {
					continue // PRIORITY_UPDATE
				}
				h.write(func() error { return h.fr.WriteRawFrame(http2.FrameType(typ), 0xff, stream, []byte("anything")) })
			}
		}
		h.data(id, true, "hello")
		h.want(t, id, 200)
		h.write(func() error { return h.fr.WriteRawFrame(0xfe, 0, id, nil) })
		h.alive(t)
	})
}

func TestCase188_PushFromAClientIsAConnectionError(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		h.alive(t)
		h.write(func() error {
			return h.fr.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: h.block(pseudo("GET", "/")...), EndHeaders: true})
		})
		require.Equal(t, http2.ErrCodeProtocol, h.gone(t, patience).code)
	})
}

func TestCase189_PriorityAndPadding(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		send := func(pad uint8, p http2.PriorityParam) uint32 {
			id := h.id
			h.id += 2
			h.write(func() error {
				return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h.block(pseudo("POST", "/")...), EndHeaders: true, PadLength: pad, Priority: p})
			})
			return id
		}
		for _, pad := range []uint8{0, 1, 255} {
			id := send(pad, http2.PriorityParam{StreamDep: 1001, Weight: 7, Exclusive: true})
			h.write(func() error { return h.fr.WriteDataPadded(id, false, []byte("he"), make([]byte, pad)) })
			h.write(func() error { return h.fr.WriteDataPadded(id, true, []byte("llo"), make([]byte, pad)) })
			h.want(t, id, 200)
			require.Equal(t, "hello", string(r.U[1].last(t).body))
		}
		h.isReset(t, send(0, http2.PriorityParam{StreamDep: h.id}), http2.ErrCodeProtocol)
		h.alive(t)
	})
}

func TestCase190_ALPN(t *testing.T) {
	t.Parallel()
	r := newRig(t, tlsH1)
	for _, c := range []struct {
		offer []string
		want  string
	}{{[]string{"h2", "http/1.1"}, "h2"}, {[]string{"http/1.1"}, "http/1.1"}, {nil, ""}} {
		conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: c.offer})
		require.NoError(t, err)
		require.Equal(t, c.want, conn.ConnectionState().NegotiatedProtocol)
		if c.want != "h2" {
			fmt.Fprint(conn, request{fields: []string{"Connection: close"}})
			b, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Contains(t, string(b), "HTTP/1.1 200 OK")
		}
		conn.Close()
	}
	_, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"foo"}})
	require.ErrorContains(t, err, "no application protocol")

	before := r.heads()
	h1 := r.dial(t)
	h1.send(http2.ClientPreface)
	m, err := h1.response("GET")
	require.True(t, err != nil || m.status == 400 || m.status == 505, "the preface on an HTTP/1.1 connection")
	h2 := r.dialRawH2(t)
	h2.send(request{}.String())
	go h2.read()
	h2.gone(t, patience)
	require.Empty(t, h2.streams)
	require.Equal(t, before, r.heads())
}

func TestCase167_ResetWhileWaitingDropsTheUpstreamRequest(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
			h := r.dialH2(t)
			r.U[1].play(hang, hang)
			aborts := r.sum("ferryman_client_aborts_total")
			heads := len(r.U[1].started())
			id := h.ask("GET", "/", true)
			q := r.U[1].awaitStarted(t, heads+1)
			h.rstStream(id, http2.ErrCodeCancel)
			r.U[1].goneWithin(t, q.conn, 5*time.Second)
			h.want(t, h.ask("GET", "/api", true), 200)

			h.ask("GET", "/", true)
			q = r.U[1].awaitStarted(t, heads+2)
			h.rst()
			r.U[1].goneWithin(t, q.conn, 5*time.Second)
			eventually(t, func() bool { return r.sum("ferryman_client_aborts_total") == aborts+2 }, "aborts are counted")
			require.Zero(t, r.answered(502)+r.answered(504))
		}))
	})
}

func TestCase183_ResetsAtAnyMoment(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			c.unrecorded()
			if !c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nX-Nonce: " + q.get("X-Nonce") + "\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("a", 500)) {
				return false
			}
			if !c.body(q) {
				return false
			}
			return c.send(strings.Repeat("b", 500))
		})
		for range scaled(4) {
			h := r.dialH2(t)
			for range 150 {
				n := nonce()
				upload := rand.IntN(2) == 0
				id := h.ask("POST", "/", !upload, "x-nonce", n)
				if upload {
					h.data(id, rand.IntN(2) == 0, "hello")
				}
				switch rand.IntN(4) {
				case 0:
				case 1:
					runtime.Gosched()
				case 2:
					pause(time.Duration(rand.IntN(2000)) * time.Microsecond)
				case 3:
					h.within(100*time.Millisecond, func() bool { return h.stream(id).n > 0 })
				}
				h.rstStream(id, http2.ErrCodeCancel)
				h.mu.Lock()
				if s := h.stream(id); len(s.heads) > 0 {
					require.Equal(t, n, s.final().get("x-nonce"))
				}
				h.mu.Unlock()
			}
			eventually(t, func() bool { return r.sum("ferryman_upstream_connections", `state="in_use"`) == 0 }, "upstream requests outlive their streams")
			h.want(t, h.ask("GET", "/api", true), 200)
			h.close()
		}
	})
}

func TestCase142_UploadIsHeldBackByASlowUpstream(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		release := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			<-release
			return c.body(q) && c.send(describe(q))
		})
		h := r.dialH2(t)
		const size = 24 << 20
		id := h.ask("POST", "/", false)
		piece := strings.Repeat("x", 16384)
		sent := 0
		for sent < size && h.within(time.Second, func() bool { return h.fits(id, 16384) }) {
			h.feed(t, id, piece)
			sent += len(piece)
		}
		require.Less(t, sent, 16<<20, "the proxy takes no more than windows and socket buffers hold")
		close(release)
		for sent < size {
			h.feed(t, id, piece)
			sent += len(piece)
		}
		h.data(id, true, "")
		h.want(t, id, 200)
		require.Equal(t, int64(sent), r.U[1].last(t).bodyLen)
	})
}

func TestCase141_DownloadIsHeldBackByASlowClient(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		offered := make(chan int64, 1)
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			n := int64(0)
			c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 1073741824\r\n\r\n")
			piece := strings.Repeat("x", 64<<10)
			for c.send(piece) {
				n += int64(len(piece))
			}
			offered <- n
			return false
		})
		h := r.dialH2(t, h2options{manual: true})
		id := h.ask("GET", "/", true)
		h.until(t, "the first window", func() bool { return h.stream(id).n == 65535 })
		for range 20 {
			h.grant(0, 512)
			h.grant(id, 512)
			pause(quiet / 4)
		}
		h.until(t, "what the windows take", func() bool { return h.stream(id).n == 65535+20*512 })
		h.rstStream(id, http2.ErrCodeCancel)
		require.Less(t, <-offered, int64(16<<20), "only socket buffers may lie between")
	})
}

func TestCase239_KeptConnectionsSeeNewRoutes(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		h.serve(t, r.U[1], "GET", "/")
		r.reload(t, func(c *config.Config) { c.Routes[0].Upstream = r.U[5].addr })
		h.serve(t, r.U[5], "GET", "/")
	})
}

// Many downloads through a small window of the connection, beside heads that need none: nobody may
// be forgotten when room or window comes.
func TestCase143_ConnectionWindowIsSharedByManyStreams(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].playAlways(reply(ok(strings.Repeat("x", 40000))))
		h := r.dialH2(t, h2options{manual: true})
		var big, small []uint32
		for range 60 {
			big = append(big, h.ask("GET", "/", true))
		}
		h.until(t, "the window to be used up", func() bool {
			n := int64(0)
			for _, id := range big {
				n += h.stream(id).n
			}
			return n == 65535
		})
		for range 60 {
			small = append(small, h.ask("HEAD", "/api", true))
		}
		for _, id := range small {
			h.want(t, id, 200)
		}
		for range 60 * 40000 / 1000 {
			h.grant(0, 1000)
		}
		for _, id := range big {
			require.Equal(t, int64(40000), h.want(t, id, 200).n)
		}
	})
}
