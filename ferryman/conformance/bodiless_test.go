package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

func TestCase125_HeadKeepsItsLengthAndHasNoBody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		c := r.dial(t)
		for i := range 8 {
			q := request{m: []string{"HEAD", "GET"}[i%2], nonce: nonce()}
			if q.m == "HEAD" {
				r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nX-Nonce: " + q.nonce + "\r\nContent-Length: 5\r\n\r\n"))
			}
			resp := c.do(t, q)
			require.Equal(t, q.nonce, resp.get("X-Nonce"))
			if q.m == "HEAD" {
				require.Equal(t, []string{"5"}, resp.values("Content-Length"))
			}
		}
		require.Len(t, r.U[1].connections(), 1)
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n"), reply("HTTP/1.1 200 OK\r\nX-U: x\r\n\r\n"))
		c.do(t, request{m: "HEAD"})
		c.do(t, request{m: "HEAD"})
		require.Equal(t, 200, c.do(t, request{}).status)
	})
}

func TestCase126_HeadWithABodyNevertheless(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for i, raw := range []string{"Content-Length: 5\r\n\r\nhello", "Content-Length: 50000\r\n\r\n" + strings.Repeat("x", 50_000),
			"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"} {
			r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\n" + raw))
			require.Equal(t, 200, c.do(t, request{m: "HEAD"}).status)
			q := request{nonce: nonce()}
			require.Equal(t, q.nonce, c.do(t, q).get("X-Nonce"))
			r.U[1].gone(t, 2*i)
			// The connection of the control request must be out of the pool for the next round.
			r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
			c.do(t, request{})
		}
	})
}

func TestCase127_NoContentAndNotModified(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, status := range []int{204, 304} {
			for _, raw := range []string{"Content-Length: 0\r\n", "Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n", ""} {
				t.Run(label(fmt.Sprint(status, raw)), func(t *testing.T) {
					r.U[1].play(reply(fmt.Sprintf("HTTP/1.1 %d X\r\nX-U: x\r\n%s\r\n", status, raw)))
					resp := c.do(t, request{})
					require.Equal(t, status, resp.status)
					require.Empty(t, resp.body)
					require.False(t, resp.has("Transfer-Encoding") && status == 204)
					require.False(t, resp.has("Content-Length") && status == 204)
					require.NotContains(t, strings.ToLower(resp.get("Connection")), "close")
					q := request{nonce: nonce()}
					require.Equal(t, q.nonce, c.do(t, q).get("X-Nonce"))
				})
			}
		}
	})
}

func TestCase129_HTTP10GetsOneUnchunkedResponse(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, line := range []string{"", "Connection: keep-alive\r\n", "Connection: close\r\n"} {
			for _, raw := range []string{"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Content-Length: 5\r\n\r\nhello"} {
				r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\n" + raw))
				c := r.dial(t)
				c.send("GET / HTTP/1.0\r\nHost: a\r\n" + line + "\r\n" + smuggled)
				resp := c.want(t, "GET", 200)
				require.False(t, resp.has("Transfer-Encoding"))
				require.Equal(t, []string{"close"}, resp.values("Connection"))
				require.Equal(t, "hello", string(resp.body))
				c.closedByPeer(t)
			}
		}
		r.U[1].play(replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\n\r\nhello"))
		c := r.dial(t)
		c.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
		resp := c.want(t, "GET", 200)
		require.Equal(t, "close", resp.framing)
		require.Equal(t, "hello", string(resp.body))
	})
}

func TestCase129_CutBodyTowardsHTTP10(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		// Nothing but the end delimits this body: a truncation must not look like one.
		r := newRig(t, m)
		r.U[1].play(replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"))
		c := r.dial(t)
		c.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
		_, err := c.response("GET")
		require.Error(t, err, "a cut body must not end with an orderly close")
	})
}

func TestCase130_CloseIsHonoured(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, line := range []string{"Connection: close", "Connection: Keep-Alive, Close", "connection: CLOSE", "Connection: x,close,y"} {
			c := r.dial(t)
			resp := c.do(t, request{fields: []string{line}})
			require.Equal(t, []string{"close"}, resp.values("Connection"))
			c.closedByPeer(t)
		}
	})
}

func TestCase131_ManyRequestsOnOneConnection(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		g := rand.New(rand.NewPCG(131, 1))
		for range scaled(400) {
			q := request{nonce: nonce(), m: []string{"GET", "POST", "HEAD", "DELETE", "PUT"}[g.IntN(5)], path: []string{"/", "/api", "/api/v1", "/strip/x"}[g.IntN(4)]}
			switch g.IntN(3) {
			case 0:
				q.body = strings.Repeat("b", 1+g.IntN(3000))
			case 1:
				q.chunks = []string{"a", strings.Repeat("c", 1+g.IntN(3000))}
			}
			resp := c.do(t, q)
			require.Equal(t, 200, resp.status)
			require.Equal(t, q.nonce, resp.get("X-Nonce"))
		}
	})
}

// Cases 132 and 169.
func TestCase132And169_PipelinedAnswersKeepTheirOrder(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			d, err := time.ParseDuration(strings.TrimPrefix(q.target, "/"))
			if err == nil {
				pause(d)
			}
			return echo(c, q)
		})
		c := r.dial(t)
		var all string
		var row []request
		for _, d := range []string{"200ms", "10ms", "100ms", "0ms", "50ms"} {
			q := request{path: "/" + d, nonce: nonce()}
			row = append(row, q)
			all += q.String()
		}
		for range 2 {
			c.send(all)
			for _, q := range row {
				require.Equal(t, q.nonce, c.want(t, "GET", 200).get("X-Nonce"))
			}
		}
		require.Equal(t, 10, r.whole(), "none may be given up because more bytes are readable")
	})
}

func TestCase133_NothingFollowsABrokenPost(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		c.send(chunked("Z\r\n") + request{}.String())
		c.refused(t, 400)
		require.Zero(t, r.whole())
	})
}

func TestCase134_OwnReplyWhileABodyIsUnread(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot)
		for _, n := range []int{1, 1000, 60 << 10} {
			for _, q := range []request{{m: "POST", path: "/none", body: strings.Repeat("b", n)}, {m: "POST", path: "/none", chunks: []string{strings.Repeat("b", n)}}} {
				c := r.dial(t)
				c.send(q.String())
				resp := c.must(t, "POST")
				own(t, resp, 404, "no route")
				if resp.get("Connection") == "close" {
					c.closedByPeer(t)
				} else {
					require.Equal(t, 200, c.do(t, request{path: "/api"}).status)
				}
				c.close()
			}
		}
		c := r.dial(t)
		c.send(fmt.Sprintf("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", 10<<20))
		block := strings.Repeat("b", 64<<10)
		for range 160 { // the reply is read only after everything was written
			c.send(block)
			pause(40 * time.Millisecond) // for six seconds and more
		}
		require.NoError(t, c.writeErr, "reset while the body was being sent")
		resp := c.must(t, "POST")
		own(t, resp, 404, "no route")
		require.Equal(t, []string{"close"}, resp.values("Connection"))
		c.closedByPeer(t)
	})
}

func TestCase135_IdleLimit(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.ClientIdleTimeout = clientIdle; s.head = shortHead })
		half := r.dial(t)
		half.send("GET / HT")
		used := r.dial(t)
		require.Equal(t, 200, used.do(t, request{}).status)
		start := time.Now()
		fresh := r.dial(t)
		fresh.closedByPeer(t)
		used.closedByPeer(t)
		require.Greater(t, time.Since(start), clientIdle/2)
		half.closedOrTimedOut(t)
		require.Equal(t, 1, r.heads())
	})
}

func TestCase136_ClientThatShutsDownWentAway(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(hang)
		c := r.dial(t)
		c.send(request{}.String())
		r.U[1].awaitStarted(t, 1)
		c.fin()
		r.U[1].gone(t, 0)
		b, _ := c.end()
		require.Empty(t, string(b))
		eventually(t, func() bool { return r.sum("ferryman_client_aborts_total") == 1 }, "the abort is not counted")
	})
}

func TestCase137_ConnectionAfterAnOwnReply(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot, shortTimeout, func(s *setup) {
			s.cfg.FailureThreshold = 1
			s.cfg.DefaultCooldown = patience
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/u1", Upstream: r1(s)})
		})
		r.U[5].play(hang)
		for _, step := range []struct {
			path   string
			status int
		}{{"/nowhere", 404}, {"/down", 502}, {"/down", 503}, {"/strip", 504}, {"/strip", 503}} {
			c := r.dial(t)
			resp := c.do(t, request{path: step.path})
			own(t, resp, step.status, "")
			if resp.get("Connection") == "close" {
				c.closedByPeer(t)
				continue
			}
			// That there is a whole answer is what counts; a busy machine may time out once more.
			require.Contains(t, []int{200, 504}, c.do(t, request{path: "/api"}).status)
		}
	})
}

// r1 is any upstream of the rig, for a route more.
func r1(s *setup) string { return s.cfg.Routes[0].Upstream }
