package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

func TestCase158_EarlyRefusalOfALargeUpload(t *testing.T) {
	page := strings.Repeat("p", 50<<10)
	refusal := fmt.Sprintf("HTTP/1.1 413 Too Large\r\nX-U: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprint("reset ", reset), func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				r.U[1].play(func(c *uconn, q *message) bool {
					c.unrecorded()
					_ = c.conn.SetReadBuffer(32 << 10)
					_, _ = io.CopyN(io.Discard, c.w.br, 64<<10)
					c.send(refusal)
					if reset {
						pause(quiet)
						c.reset()
						return false
					}
					<-release // reads no more
					return false
				})
				c := r.dial(t)
				defer c.close()
				block := strings.Repeat("b", 64<<10)
				wait := c.sendAside(append([]string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\n"}, blocks(block, 1600)...)...)
				resp := c.must(t, "POST")
				require.Equal(t, 413, resp.status)
				require.Equal(t, page, string(resp.body))
				require.Equal(t, []string{"close"}, resp.values("Connection"))
				c.close()
				wait()
			})
		}
	})
}

func blocks(s string, n int) []string {
	b := make([]string, n)
	for i := range b {
		b[i] = s
	}
	return b
}

func TestCase159_EarlyAnswerWhileTheUpstreamReadsOn(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		const size = 4 << 20
		for _, status := range []string{"401 No", "200 OK"} {
			t.Run(status, func(t *testing.T) {
				r.U[1].play(func(c *uconn, q *message) bool {
					c.unrecorded()
					c.send("HTTP/1.1 " + status + "\r\nX-U: x\r\nContent-Length: 2\r\n\r\nno")
					return c.body(q)
				})
				c := r.dial(t)
				defer c.close()
				wait := c.sendAside(append([]string{fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)}, blocks(strings.Repeat("b", 64<<10), size>>16)...)...)
				resp := c.must(t, "POST")
				require.Equal(t, status, resp.line[9:])
				require.Equal(t, "no", string(resp.body))
				if resp.get("Connection") == "close" {
					wait()
					c.close()
				} else {
					wait()
					require.Equal(t, 200, c.do(t, request{}).status)
				}
				require.Equal(t, 200, r.get(t, "/").status)
				for _, q := range r.U[1].requests() {
					require.True(t, q.method != "POST" || q.bodyLen == size, "a part of an upload looks whole: %d", q.bodyLen)
				}
			})
		}
	})
}

func TestCase160_UpstreamsThatCannotBeReached(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		noName := strings.Repeat("n", 64) + ":80" // longer than a label can be: no lookup leaves the machine
		r := newRig(t, m, threshold1, shortConnect, func(s *setup) {
			s.cfg.DefaultCooldown = patience
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/name", Upstream: noName})
		})
		black := r.cfg.Routes[6].Upstream
		for _, row := range []struct {
			path, addr string
			least      time.Duration
		}{{"/down", r.down, 0}, {"/black", black, connectTimeout}, {"/name", noName, 0}} {
			t.Run(label(row.path), func(t *testing.T) {
				c := r.dial(t)
				defer c.close()
				start := time.Now()
				own(t, c.do(t, request{path: row.path}), 502, "bad gateway")
				took := time.Since(start)
				require.GreaterOrEqual(t, took, row.least*9/10)
				require.Less(t, took, soon)
				require.Equal(t, 1, int(r.metrics()[fmt.Sprintf("ferryman_circuit_state{upstream=%q}", row.addr)]), "it must count as a failure")
				own(t, c.do(t, request{path: row.path}), 503, "upstream unavailable")
			})
		}
	})
}

func TestCase161_SilentUpstreamIsA504AtTheDeadline(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		r.U[1].play(hang)
		c := r.dial(t)
		start := time.Now()
		own(t, c.do(t, request{}), 504, "")
		took := time.Since(start)
		require.GreaterOrEqual(t, took, upstreamTimeout*9/10)
		require.Less(t, took, soon)
		r.U[1].gone(t, 0)
	})
}

func TestCase161_SlowUploadIsNeverA504(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const limit = time.Second
		r := newRig(t, m, func(s *setup) { s.cfg.UpstreamTimeout = limit })
		for _, q := range []request{{m: "POST", body: "0123456789", nonce: nonce()}, {m: "POST", chunks: []string{"0", "123", "456", "789"}, nonce: nonce()}} {
			s := q.String()
			head := strings.Index(s, "\r\n\r\n") + 4
			resp := r.unlessHeldUp(t, limit, "POST", func(c *client) {
				c.send(s[:head])
				for i := range 5 { // two and a half times the timeout, in gaps of half of it
					pause(limit / 2)
					n := (len(s) - head) * i / 5
					c.send(s[head+n : head+(len(s)-head)*(i+1)/5])
				}
			})
			require.Equal(t, 200, resp.status)
			require.Equal(t, q.nonce, resp.get("X-Nonce"))
		}
	})
}

func TestCase161_ClockStartsAgainAfterAPausedUpload(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		r.U[1].play(hang)
		c := r.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh")
		pause(upstreamTimeout * 2)
		start := time.Now()
		c.send("i")
		own(t, c.must(t, "POST"), 504, "")
		require.GreaterOrEqual(t, time.Since(start), upstreamTimeout*9/10)
	})
}

func TestCase162_VerdictOfA504(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for _, row := range []struct {
			q    request
			want verdict
		}{{request{}, failure}, {request{m: "POST"}, failure}, {request{m: "POST", body: "x"}, neutral}, {request{m: "POST", chunks: []string{"x"}}, neutral}} {
			require.Equal(t, row.want, r.verdictOf(t, "/", r.U[1], func() {
				r.during(t, soonTimedOut, func() {
					r.U[1].play(hang)
					c := r.dial(t)
					defer c.close()
					own(t, c.do(t, row.q), 504, "")
				})
			}), "%s %q %q", row.q.m, row.q.body, row.q.chunks)
		}
	})
}

func TestCase162_UpstreamThatTakesNoBodyIsA504(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
			r.during(t, soonTimedOut, func() {
				release := make(chan struct{})
				r.U[1].play(func(c *uconn, q *message) bool { c.unrecorded(); <-release; c.reset(); return false })
				c := r.dial(t)
				defer c.close()
				wait := c.sendAside(append([]string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\n"}, blocks(strings.Repeat("b", 64<<10), 1600)...)...)
				own(t, c.must(t, "POST"), 504, "")
				close(release)
				c.close()
				wait()
			})
		}))
	})
}

func TestCase163_SlowBodyIsNoTimeout(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			c.body(q)
			c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 6\r\n\r\n")
			for range 6 {
				pause(upstreamTimeout / 2)
				c.send("x")
			}
			return true
		})
		resp := r.unlessHeldUp(t, upstreamTimeout, "GET", func(c *client) { c.send(request{}.String()) })
		require.Equal(t, 200, resp.status)
		require.Equal(t, "xxxxxx", string(resp.body))
	})
}

func soonIdle(c *config.Config) { c.BodyIdleTimeout = bodyIdle }

func TestCase164_BodyThatStalls(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for _, raw := range []string{"Content-Length: 100\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "X: 1\r\n\r\nhello"} {
			v := r.verdictOf(t, "/", r.U[1], func() {
				r.during(t, soonIdle, func() {
					r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\n" + raw))
					c := r.dial(t)
					defer c.close()
					c.send(request{}.String())
					c.truncated(t, "hello")
					r.U[1].gone(t, r.U[1].last(t).conn)
				})
			})
			require.NotEqual(t, failure, v)
		}
	})
}

func TestCase165_NoRouteAndOpenCircuit(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = patience })
		c := r.dial(t)
		own(t, c.do(t, request{path: "/nowhere"}), 404, "no route")
		require.Zero(t, r.heads())
		r.fail(t, "/api", r.U[2])
		before := len(r.U[2].connections())
		for range 10 {
			resp := c.do(t, request{path: "/api"})
			own(t, resp, 503, "upstream unavailable")
			require.Regexp(t, `^[1-9][0-9]*$`, resp.get("Retry-After"))
		}
		require.Len(t, r.U[2].connections(), before)
		require.Len(t, r.U[2].started(), 1)
	})
}

func TestCase167_ClientLeavesWhileWaiting(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		aborts := 0
		for _, leave := range []func(*client){(*client).fin, (*client).rst, (*client).close} {
			for _, q := range []request{{}, {m: "POST", body: "hello"}} {
				require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
					before := len(r.U[1].requests())
					r.U[1].play(hang)
					c := r.dial(t)
					defer c.close()
					c.send(q.String())
					eventually(t, func() bool { return len(r.U[1].requests()) > before }, "the request does not arrive")
					start := time.Now()
					leave(c)
					r.U[1].gone(t, r.U[1].last(t).conn)
					require.Less(t, time.Since(start), soon)
					aborts++
					eventually(t, func() bool { return int(r.sum("ferryman_client_aborts_total")) == aborts }, "the abort is not counted")
				}))
			}
		}
		require.Zero(t, r.answered(502)+r.answered(504)+r.answered(500))
	})
}

func TestCase168_ClientThatLeavesWhileIdleIsNotLogged(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		loud := func() int { return r.log.count("level=") - r.log.count("level=DEBUG") }
		r.get(t, "/")
		before := loud()
		for _, leave := range []func(*client){(*client).fin, (*client).rst, (*client).close} {
			leave(r.dial(t))
			c := r.dial(t)
			c.do(t, request{})
			leave(c)
		}
		for _, c := range r.clients {
			if !c.closed {
				c.close()
			}
		}
		r.awaitIdle(t)
		require.Equal(t, before, loud(), "%s", r.log.text())
		require.Zero(t, r.sum("ferryman_client_aborts_total"))
	})
}

func TestCase170_UpstreamDiesAfterItsFirstChunk(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, raw := range []string{"Content-Length: 100\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
			for _, h := range []func(...string) handler{replyThenClose, replyThenReset} {
				r.U[1].play(h("HTTP/1.1 200 OK\r\nX-U: x\r\n" + raw))
				c := r.dial(t)
				c.send(request{}.String())
				c.truncated(t, "hello")
				c.close()
			}
		}
	})
}

// Cases 171 and 211.
func TestCase171And211_StatusesOfTheUpstream(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for status, want := range map[int]verdict{200: success, 404: success, 500: success, 501: success, 505: success, 429: success, 599: success, 999: success,
			502: failure, 503: failure, 504: failure} {
			require.Equal(t, want, r.verdictOf(t, "/", r.U[1], func() {
				r.U[1].play(reply(fmt.Sprintf("HTTP/1.1 %d X\r\nX-U: x\r\nContent-Length: 4\r\n\r\nmine", status)))
				c := r.dial(t)
				defer c.close()
				resp := c.do(t, request{})
				require.Equal(t, status, resp.status)
				require.Equal(t, "mine", string(resp.body))
			}), "%d", status)
		}
	})
}
