package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

const earlyHints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"

// shortConnect is for cases that wait for a dial that fails.
func shortConnect(s *setup) { s.cfg.ConnectTimeout = connectTimeout }

// shortTimeout is for cases that wait for the header deadline.
func shortTimeout(s *setup) { soonTimedOut(&s.cfg) }

func soonTimedOut(c *config.Config) { c.UpstreamTimeout = upstreamTimeout }

func TestCase093_InterimResponsesAreForwarded(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		r.U[1].play(reply(earlyHints, ok("done")),
			reply(earlyHints+"HTTP/1.1 102 Processing\r\n\r\n"+"HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n"+ok("done")))
		resp := c.do(t, request{})
		require.Len(t, resp.interim, 1)
		require.Equal(t, 103, resp.interim[0].status)
		require.Equal(t, "</a.css>", resp.interim[0].get("Link"))
		require.Equal(t, "done", string(resp.body))
		resp = c.do(t, request{})
		var seen []string
		for _, i := range resp.interim {
			seen = append(seen, fmt.Sprint(i.status, i.get("Link")))
		}
		require.Equal(t, []string{"103</a.css>", "102", "103</b.css>"}, seen)
	})
}

func TestCase093_InterimResponseDoesNotWaitForTheFinalOne(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		goOn := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			c.send(earlyHints)
			<-goOn
			return c.send(ok("done"))
		})
		c := r.dial(t)
		c.send(request{}.String())
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		i, err := c.w.responseHead("GET")
		close(goOn)
		require.NoError(t, err)
		require.Equal(t, 103, i.status)
		require.Equal(t, "done", string(c.want(t, "GET", 200).body))
	})
}

func TestCase094_HTTP10ClientsGetNoInterimResponse(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(reply(earlyHints, earlyHints, ok("done")))
		c := r.dial(t)
		c.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
		resp := c.want(t, "GET", 200)
		require.Empty(t, resp.interim)
		require.Equal(t, "done", string(resp.body))
		c.closedByPeer(t)
	})
}

func TestCase095_InterimResponseThenNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		c := r.dial(t)
		r.U[1].play(replyThenClose(earlyHints), replyThenHold(earlyHints))
		resp := c.do(t, request{})
		own(t, resp, 502, "bad gateway")
		require.Len(t, resp.interim, 1)
		r.U[1].gone(t, 0)
		resp = c.do(t, request{})
		own(t, resp, 504, "")
		require.Len(t, resp.interim, 1)
		r.U[1].gone(t, 1)
	})
}

func TestCase096_InterimResponsesDoNotMoveTheDeadline(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		r.U[1].play(func(c *uconn, q *message) bool {
			for c.body(q); c.send(earlyHints); pause(upstreamTimeout / 6) {
			}
			return false
		})
		c := r.dial(t)
		start := time.Now()
		own(t, c.do(t, request{}), 504, "")
		require.Less(t, time.Since(start), soon)
		r.U[1].gone(t, 0)
	})
}

func TestCase096_FloodOfInterimResponses(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fails502(t, replyThenHold(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 10_000)+ok("x")))
	})
}

func TestCase097_UnknownInterimStatuses(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, status := range []int{102, 110, 199, 100} {
			r.U[1].play(reply(fmt.Sprintf("HTTP/1.1 %d X\r\nX-I: 1\r\n\r\n", status), ok("done")))
			resp := c.do(t, request{})
			require.Len(t, resp.interim, 1)
			require.Equal(t, status, resp.interim[0].status)
			require.Equal(t, "1", resp.interim[0].get("X-I"))
			require.Equal(t, "done", string(resp.body))
		}
	})
}

const goAhead = "HTTP/1.1 100 Continue\r\n\r\n"

// expectHead is the head of a POST of 5 bytes that waits for a 100.
func expectHead(n string, expectation string) string {
	return "POST / HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\nContent-Length: 5\r\nExpect: " + expectation + "\r\n\r\n"
}

func TestCase098_ExpectIsEndToEnd(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, expectation := range []string{"100-continue", "100-Continue"} {
			early := make(chan int, 1)
			r.U[1].play(func(c *uconn, q *message) bool {
				early <- c.w.br.Buffered()
				return c.send(goAhead) && echo(c, q)
			})
			n := nonce()
			c.send(expectHead(n, expectation))
			_ = c.conn.SetReadDeadline(time.Now().Add(patience))
			i, err := c.w.responseHead("POST")
			require.NoError(t, err)
			require.Equal(t, 100, i.status)
			require.Zero(t, <-early, "body bytes before the 100")
			c.send("hello")
			require.Equal(t, n, c.want(t, "POST", 200).get("X-Nonce"))
			q := r.U[1].last(t)
			require.Equal(t, "hello", string(q.body))
			require.Equal(t, "100-continue", strings.ToLower(q.get("Expect")))
		}
	})
}

func TestCase099_RefusedExpectation(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(func(c *uconn, q *message) bool {
			c.send("HTTP/1.1 401 No\r\nX-U: x\r\nContent-Length: 2\r\n\r\nno")
			return false
		})
		c := r.dial(t)
		c.send(expectHead(nonce(), "100-continue"))
		resp := c.want(t, "POST", 401)
		require.Empty(t, resp.interim)
		require.Equal(t, []string{"close"}, resp.values("Connection"))
		c.closedByPeer(t)
		r.U[1].gone(t, 0)
		r.get(t, "/")
		require.Equal(t, 1, r.U[1].last(t).conn)
	})
}

func TestCase100_ClientDoesNotWait(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for range 3 {
			r.U[1].play(func(c *uconn, q *message) bool { return c.send(goAhead) && echo(c, q) })
			n := nonce()
			c.send(expectHead(n, "100-continue") + "hello")
			require.Equal(t, n, c.want(t, "POST", 200).get("X-Nonce"))
			require.Equal(t, "hello", string(r.U[1].last(t).body))
		}
		c.send(expectHead(nonce(), "100-continue") + "hello") // and the upstream sends none
		c.want(t, "POST", 200)
		require.Equal(t, 4, r.whole())
	})
}

func TestCase101_ContinueThatNeverComes(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
			r.during(t, soonTimedOut, func() {
				heads := len(r.U[1].started())
				r.U[1].play(func(c *uconn, q *message) bool { return false })
				c := r.dial(t)
				defer c.close()
				c.send(expectHead(nonce(), "100-continue"))
				resp := c.must(t, "POST")
				own(t, resp, 504, "")
				require.Empty(t, resp.interim)
				r.U[1].gone(t, r.U[1].awaitStarted(t, heads+1).conn)
			})
		}))
	})
}

func TestCase102_ExpectOddities(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		resp, q := r.serves(t, "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
		require.False(t, q.has("Expect"))
		require.Empty(t, resp.interim)
		require.Equal(t, "hello", string(q.body))
		r.dial(t).sends(t, "Expect: 100-continue")
		for _, v := range []string{"foo", "100-continue, foo", "100-continuex", "200-ok", ""} {
			t.Run(label(v), func(t *testing.T) {
				r.refuses(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: "+v+"\r\n\r\nhello", 417)
			})
		}
	})
}

func TestCase103_ExpectOnOwnReplies(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = patience })
		r.fail(t, "/api", r.U[2])
		for _, c := range []struct {
			path, lines string
			status      int
		}{{"/nowhere", "", 404}, {"/api", "", 503}, {"/api/v1", "Connection: Upgrade\r\nUpgrade: x\r\n", 501}} {
			t.Run(fmt.Sprint(c.status), func(t *testing.T) {
				cl := r.dial(t)
				defer cl.close()
				cl.send("POST " + c.path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n" + c.lines + "\r\n")
				resp := cl.must(t, "POST")
				own(t, resp, c.status, "")
				require.Empty(t, resp.interim)
			})
		}
	})
}

func TestCase104_HeadWithExpect(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		r.U[1].play(func(c *uconn, q *message) bool { return c.send(goAhead) && echo(c, q) })
		n := nonce()
		c.send("HEAD / HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		i, err := c.w.responseHead("HEAD")
		require.NoError(t, err)
		require.Equal(t, 100, i.status)
		c.send("hello")
		require.Equal(t, n, c.want(t, "HEAD", 200).get("X-Nonce"))
		require.Equal(t, 200, c.do(t, request{}).status)
	})
}
