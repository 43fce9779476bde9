package conformance

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortLimits stands in for the fixed 10 s.
func shortLimits(s *setup) { s.head, s.handshake = shortHead, shortHead }

// closedOrTimedOut asserts that the connection ends, at most with a 408 before.
func (c *client) closedOrTimedOut(t testing.TB) {
	t.Helper()
	b, err := c.end()
	require.True(t, err == nil || isReset(err), "%v", err)
	require.True(t, len(b) == 0 || strings.HasPrefix(string(b), "HTTP/1.1 408 "), "%q", b)
}

func TestCase258_TrickledHeadIsCut(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortLimits)
		for _, step := range []string{"G", "X: 1\r\n"} { // by byte, by line
			c := r.dial(t)
			start := time.Now()
			if step != "G" {
				c.send("GET / HTTP/1.1\r\nHost: a\r\n")
			}
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for c.writeErr == nil {
					select {
					case <-stop:
						return
					case <-time.After(shortHead / 20):
						c.send(step)
					}
				}
			}()
			c.closedOrTimedOut(t)
			took := time.Since(start)
			close(stop)
			<-done
			require.GreaterOrEqual(t, took, shortHead*8/10)
			require.Less(t, took, soon)
			c.close()
		}
		require.Zero(t, r.heads())
	})
}

func TestCase258_ClockOfTheNextHeadStartsWithItsFirstByte(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortLimits)
		c := r.dial(t)
		for range 3 {
			require.Equal(t, 200, c.do(t, request{}).status)
			pause(shortHead * 12 / 10) // idle for longer than a head may take
		}
		start := time.Now()
		c.send("GET / HTTP/1.1\r\n")
		c.closedOrTimedOut(t)
		require.GreaterOrEqual(t, time.Since(start), shortHead*8/10)
	})
}

// Two proxies answer by turns, so that whatever else the machine does strikes both.
func TestCase258_SlowHeadsDelayNobody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		beset := newRig(t, m)
		for range scaled(150) {
			beset.dial(t).send("GET / HTTP/1.1\r\nX: ")
		}
		clients := []*client{beset.dial(t), newRig(t, m).dial(t)}
		var took [2][]time.Duration
		for range 50 {
			for i, c := range clients {
				start := time.Now()
				require.Equal(t, 200, c.do(t, request{}).status)
				took[i] = append(took[i], time.Since(start))
			}
		}
		for i := range took {
			slices.Sort(took[i])
		}
		require.Less(t, took[0][25], 10*took[1][25]+100*time.Millisecond, "medians")
	})
}

func TestCase259_SilentConnections(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortLimits, func(s *setup) { s.cfg.ClientIdleTimeout = clientIdle })
		silent := r.dial(t)
		start := time.Now()
		silent.closedByPeer(t)
		require.GreaterOrEqual(t, time.Since(start), clientIdle*8/10)
		if m.tls {
			return
		}
		for _, raw := range []string{h2Preface[:10], h2Preface[:23], h2Preface} {
			c := r.dial(t)
			c.send(raw)
			_, err := c.end() // what a server may say before is its own business here
			require.True(t, err == nil || isReset(err), "%q: %v", raw, err)
		}
	})
}

func TestCase260_SlowBodyWithoutALimitGoesOn(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		n := nonce()
		resp := r.unlessHeldUp(t, upstreamTimeout, "POST", func(c *client) {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\nContent-Length: 6\r\n\r\n")
			for range 6 {
				pause(upstreamTimeout * 4 / 10)
				c.send("x")
			}
		})
		require.Equal(t, 200, resp.status)
		require.Equal(t, n, resp.get("X-Nonce"))
	})
}

func TestCase261_ClientThatDoesNotReadIsEnded(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.BodyIdleTimeout = bodyIdle })
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			c.body(q)
			block := strings.Repeat("x", 64<<10)
			c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n", 100<<20))
			for range 1600 {
				if !c.send(block) {
					break
				}
			}
			return false
		})
		const clients = 5
		for range clients {
			c := r.dialWith(t, clientTLS, 16<<10)
			c.send(request{}.String())
		}
		r.U[1].awaitStarted(t, clients)
		for i := range clients {
			r.U[1].gone(t, i)
		}
		r.awaitIdle(t)
	})
}

func TestCase262_ConnectionLimitClosesTheNewest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const limit = 5
		r := newRig(t, m, func(s *setup) { s.cfg.MaxConnections = limit })
		eventually(t, func() bool { return r.sum("ferryman_connections") == 0 }, "the rig's own stays")
		var clients []*client
		for range limit {
			c := r.dial(t)
			require.Equal(t, 200, c.do(t, request{}).status)
			clients = append(clients, c)
		}
		for range 5 {
			c, err := r.tryDial(clientTLS, 0) // TLS fails in its handshake
			if err != nil {
				continue
			}
			c.send(request{}.String())
			b, _ := c.end()
			require.False(t, strings.Contains(string(b), " 200 "), "%q", b)
			c.close()
		}
		for _, c := range clients {
			require.Equal(t, 200, c.do(t, request{}).status, "those that are there work on")
		}
		clients[0].close()
		eventually(t, func() bool {
			c, err := r.tryDial(clientTLS, 0)
			if err != nil {
				return false
			}
			defer c.close()
			c.send(request{}.String())
			resp, err := c.response("GET")
			return err == nil && resp.status == 200
		}, "a place that is free again is not used")
	})
}

func TestCase269_UpstreamAsAnAttacker(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		// A body in chunks of one byte.
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 20_000) + "0\r\n\r\n"))
		c := r.dial(t)
		require.Equal(t, int64(20_000), c.do(t, request{}).bodyLen)
		// A head without an end.
		endless := func(start, again string) handler {
			return func(c *uconn, q *message) bool {
				c.body(q)
				c.send(start)
				for c.send(again) {
				}
				return false
			}
		}
		for _, h := range []handler{endless("HTTP/1.1 200 OK\r\n", "X: 1\r\n"), endless("HTTP/1.1 200 OK\r\nX: ", "xxxxxxxxxxxxxxxx"), endless("", earlyHints)} {
			before := len(r.U[1].started())
			r.U[1].play(h)
			r.during(t, soonTimedOut, func() {
				resp := c.do(t, request{m: "POST"})
				require.Contains(t, []int{502, 504}, resp.status)
			})
			r.U[1].gone(t, r.U[1].awaitStarted(t, before+1).conn)
		}
		// A body without an end, after the client has left.
		before := len(r.U[1].started())
		r.U[1].play(endless("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n"))
		gone := r.dial(t)
		gone.send(request{}.String())
		_ = gone.conn.SetReadDeadline(time.Now().Add(patience))
		_, err := io.CopyN(io.Discard, gone.w.br, 100_000)
		require.NoError(t, err)
		gone.close()
		r.U[1].gone(t, r.U[1].awaitStarted(t, before+1).conn)
	})
}

func TestCase264_LimitsAreCheap(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		start := time.Now()
		for range scaled(3) {
			r.refuses(t, strings.Repeat("\r\n", 512<<10)+"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			r.refuses(t, "GET /"+strings.Repeat("a", 1<<20)+" HTTP/1.1\r\nHost: a\r\n\r\n", 414)
			r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("a", 1<<20)+"\r\n\r\n", 431)
			r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: 1\r\n", 180_000)+"\r\n", 431)
		}
		require.Less(t, time.Since(start), time.Duration(scaled(3))*4*2*time.Second)
		_, q := r.serves(t, chunked(strings.Repeat("1\r\nx\r\n", 50_000)+"0\r\n\r\n"))
		require.Equal(t, int64(50_000), q.bodyLen)
	})
}
