package conformance

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCase146_ConnectionsAreReused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		c := r.dial(t)
		c.do(t, request{})
		answers := append(slices.Clip(completeAnswers),
			struct{ method, raw string }{"GET", "HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
			struct{ method, raw string }{"GET", "HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"},
			struct{ method, raw string }{"GET", earlyHints + "HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 2\r\n\r\nok"})
		for _, a := range answers {
			r.U[1].play(reply(a.raw))
			c.do(t, request{m: a.method})
			q := request{nonce: nonce()}
			require.Equal(t, q.nonce, c.do(t, q).get("X-Nonce"))
			require.Len(t, r.U[1].connections(), 1, "after %q", a.raw)
		}
		c.do(t, request{m: "POST", body: "hello"})
		c.do(t, request{m: "POST", chunks: []string{"hello"}})
		require.Len(t, r.U[1].connections(), 1)
	})
}

// replyThenLeave answers, waits and closes without a word.
func replyThenLeave(wait time.Duration) handler {
	return func(c *uconn, q *message) bool {
		if c.body(q) && c.send(describe(q)) {
			pause(wait)
		}
		c.close()
		return false
	}
}

func TestCase147_DeadConnectionIsNoticedBeforeUse(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, q := range []request{{}, {m: "POST", body: "hello"}, {m: "POST", chunks: []string{"hello"}}, {m: "PATCH"}} {
			r.U[1].play(replyThenLeave(0))
			require.Equal(t, 200, c.do(t, request{}).status)
			r.U[1].gone(t, r.U[1].last(t).conn)
			pause(quiet)
			require.Equal(t, 200, c.do(t, q).status)
		}
		require.Equal(t, 8, r.whole())
	})
}

func TestCase147_CloseThatCrossesARequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		g := rand.New(rand.NewPCG(147, 3))
		c := r.dial(t)
		for i := range scaled(120) {
			r.U[1].play(replyThenLeave(time.Duration(g.IntN(5000)) * time.Microsecond))
			require.Equal(t, 200, c.do(t, request{}).status)
			pause(time.Duration(g.IntN(5000)) * time.Microsecond)
			q := request{nonce: nonce()}
			if i%2 == 1 {
				q.m, q.body = "POST", "hello"
			}
			resp := c.do(t, q)
			if q.m == "POST" && resp.status == 502 {
				continue
			}
			require.Equal(t, 200, resp.status)
			require.Equal(t, q.nonce, resp.get("X-Nonce"))
		}
		seen := map[string]int{}
		for _, q := range r.U[1].requests() {
			if q.method == "POST" {
				seen[q.get("X-Nonce")]++
				require.Equal(t, 1, seen[q.get("X-Nonce")], "a POST was delivered twice")
			}
		}
	})
}

// takeAndLeave reads the request whole and closes.
func takeAndLeave(c *uconn, q *message) bool {
	c.body(q)
	c.close()
	return false
}

func TestCase148_OneRetryOnAReusedConnection(t *testing.T) {
	noLength := []string{"Content-Length: 0"}
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		for _, row := range []struct {
			q     request
			again bool
		}{
			{request{}, true}, {request{m: "HEAD"}, true}, {request{m: "PUT"}, true}, {request{m: "DELETE"}, true}, {request{m: "OPTIONS"}, true}, {request{m: "TRACE"}, true},
			{request{m: "PUT", fields: noLength}, true},
			{request{m: "POST"}, false}, {request{m: "PATCH"}, false}, {request{m: "FOO"}, false}, {request{m: "get"}, false}, {request{m: "POST", fields: noLength}, false},
			{request{m: "PUT", body: "x"}, false}, {request{body: "x"}, false}, {request{m: "DELETE", chunks: []string{"x"}}, false},
		} {
			t.Run(label(row.q.method()+row.q.body+strings.Join(row.q.fields, "")), func(t *testing.T) {
				row.q.nonce = nonce()
				c := r.dial(t)
				defer c.close()
				require.Equal(t, 200, c.do(t, request{}).status) // a connection for the pool
				pooled := r.U[1].last(t).conn
				r.U[1].play(takeAndLeave)
				resp := c.do(t, row.q)
				sent := 0
				for _, q := range r.U[1].started() {
					if q.get("X-Nonce") == row.q.nonce {
						if sent == 0 {
							require.Equal(t, pooled, q.conn, "the first attempt must be on the pooled connection")
						}
						sent++
					}
				}
				if row.again {
					require.Equal(t, 200, resp.status)
					require.Equal(t, 2, sent)
				} else {
					own(t, resp, 502, "bad gateway")
					require.Equal(t, 1, sent)
				}
			})
		}
	})
}

func TestCase148_NoRetryOnAFreshConnectionAndNoSecondRetry(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		c := r.dial(t)
		r.U[1].play(takeAndLeave)
		own(t, c.do(t, request{}), 502, "bad gateway")
		require.Len(t, r.U[1].started(), 1)

		require.Equal(t, 200, c.do(t, request{}).status)
		r.U[1].play(takeAndLeave, takeAndLeave)
		own(t, c.do(t, request{}), 502, "bad gateway")
		require.Len(t, r.U[1].started(), 4)
		require.Zero(t, r.U[1].unplayed())
	})
}

func TestCase148_ResetIsRetriedLikeAnEnd(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		c := r.dial(t)
		require.Equal(t, 200, c.do(t, request{}).status)
		r.U[1].play(func(c *uconn, q *message) bool { c.body(q); c.reset(); return false })
		require.Equal(t, 200, c.do(t, request{}).status)
		require.Len(t, r.U[1].started(), 3)
	})
}

func TestCase149_NoRetryAfterAResponseByte(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, raw := range []string{"H", "HTTP/1.1 200 OK\r\n", earlyHints} {
			c := r.dial(t)
			require.Equal(t, 200, c.do(t, request{}).status)
			before := len(r.U[1].started())
			r.U[1].play(replyThenClose(raw))
			own(t, c.do(t, request{}), 502, "bad gateway")
			require.Len(t, r.U[1].started(), before+1)
			c.close()
		}
	})
}

// Cases 150 and 217, as far as the circuit is closed.
func TestCase150And217_OneVerdictAfterTheRetry(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2, oneLoop)
		require.Equal(t, success, r.verdictOf(t, "/", r.U[1], func() {
			c := r.dial(t)
			defer c.close()
			// verdictOf left a pooled connection on one executor; make sure of one on this client's.
			r.U[1].play(reply("HTTP/1.1 500 X\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"), takeAndLeave)
			require.Equal(t, 500, c.do(t, request{}).status)
			require.Equal(t, 200, c.do(t, request{}).status)
		}))
		// Two failed attempts of one request are one failure.
		r.closeCircuit(t)
		c := r.dial(t)
		defer c.close()
		require.Equal(t, 200, c.do(t, request{}).status)
		r.U[1].play(takeAndLeave, takeAndLeave)
		own(t, c.do(t, request{}), 502, "bad gateway")
		require.Zero(t, r.state(r.U[1]), "one request is one verdict")
	})
}

func TestCase151_WhatIsNotPooled(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, raw := range []string{"HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.0 200 OK\r\nX-U: x\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 204 No\r\nX-U: x\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"} {
			r.U[1].play(replyThenHold(raw))
			require.Less(t, c.do(t, request{}).status, 300)
			conn := r.U[1].last(t).conn
			r.U[1].gone(t, conn)
			require.Equal(t, 200, c.do(t, request{}).status)
			require.Equal(t, conn+1, r.U[1].last(t).conn)
			r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
			c.do(t, request{})
		}
	})
}

func TestCase152_ClientLeavesMidDownload(t *testing.T) {
	const size = 256 << 10
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		g := rand.New(rand.NewPCG(152, 4))
		for range scaled(40) {
			r.U[1].play(func(c *uconn, q *message) bool {
				c.body(q)
				return c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n", size), strings.Repeat("x", size/2), strings.Repeat("x", size/2))
			})
			before := len(r.U[1].started())
			c := r.dial(t)
			c.send(request{}.String())
			part := make([]byte, 1+g.IntN(size))
			_ = c.conn.SetReadDeadline(time.Now().Add(patience))
			for n := 0; n < len(part); {
				k, err := c.w.br.Read(part[n:])
				require.NoError(t, err)
				n += k
			}
			if g.IntN(2) == 0 {
				c.rst()
			} else {
				c.close()
			}
			r.U[1].awaitStarted(t, before+1)
			next := r.dial(t)
			q := request{nonce: nonce()}
			require.Equal(t, q.nonce, next.do(t, q).get("X-Nonce"))
			next.close()
		}
		require.Zero(t, r.answered(502))
	})
}

func TestCase153_ClientLeavesMidUpload(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for i, raw := range []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 500), chunked("5\r\nhello\r\n"), chunked("5\r\nhel")} {
			for j, leave := range []func(*client){(*client).close, (*client).rst} {
				n := 2*i + j
				c := r.dial(t)
				c.send(raw)
				q := r.U[1].awaitStarted(t, n+1)
				leave(c)
				r.U[1].gone(t, q.conn)
				require.Zero(t, r.whole(), "a cut body must not arrive as a whole one")
			}
		}
		require.Zero(t, r.answered(502))
	})
}

func TestCase154_FinalResponseBeforeTheUploadEnded(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(func(c *uconn, q *message) bool { c.send(ok("early")); return false })
		c := r.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello")
		resp := c.want(t, "POST", 200)
		require.Equal(t, "early", string(resp.body))
		require.Equal(t, []string{"close"}, resp.values("Connection"))
		c.closedByPeer(t)
		r.U[1].gone(t, 0)
		r.get(t, "/")
		require.Equal(t, 1, r.U[1].last(t).conn)
	})
}

func TestCase155_BurstsLeaveABoundedPool(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		n := scaled(100)
		var most float64
		for burst := range 3 {
			var inside sync.WaitGroup
			inside.Add(n)
			r.U[1].playAlways(func(c *uconn, q *message) bool {
				inside.Done()
				inside.Wait() // all at once
				return echo(c, q)
			})
			var clients []*client
			for range n {
				c := r.dial(t)
				c.send(request{}.String())
				clients = append(clients, c)
			}
			for _, c := range clients {
				c.want(t, "GET", 200)
				c.close()
			}
			r.awaitNothingInUse(t, r.U[1])
			idle := r.sum("ferryman_upstream_connections", `state="idle"`, r.U[1].addr)
			if burst > 0 {
				require.LessOrEqual(t, idle, most+float64(n)/2, "idle connections grow from burst to burst")
			}
			most = max(most, idle)
			require.LessOrEqual(t, idle, float64(2*n))
		}
	})
}

func TestCase156_UpstreamIsRestarted(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for range 5 {
			require.Equal(t, 200, c.do(t, request{}).status)
			old := r.U[1].connections()
			require.NoError(t, r.U[1].ln.Close())
			for _, k := range old {
				k.close()
			}
			var ln net.Listener
			eventually(t, func() (free bool) { // a connection of another test may have the port for a moment
				var err error
				ln, err = net.Listen("tcp4", r.U[1].addr)
				return err == nil
			}, "the port is taken")
			r.U[1].ln = ln
			r.U[1].coroutines.Add(1)
			go r.U[1].accept(ln)
			for range 5 {
				require.Equal(t, 200, c.do(t, request{}).status)
			}
		}
	})
}

func TestCase157_ChecksHaveConnectionsOfTheirOwn(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop, func(s *setup) {
			s.cfg.HealthInterval, s.cfg.HealthTimeout = 50*time.Millisecond, 40*time.Millisecond
		})
		c := r.dial(t)
		require.Equal(t, 200, c.do(t, request{}).status)
		conn := r.U[1].last(t).conn
		for range 5 {
			before := len(r.U[1].checked())
			eventually(t, func() bool { return len(r.U[1].checked()) > before }, "no check")
			require.Equal(t, 200, c.do(t, request{}).status)
			require.Equal(t, conn, r.U[1].last(t).conn)
		}
		for _, q := range r.U[1].checked() {
			require.NotEqual(t, conn, q.conn)
		}
	})
}
