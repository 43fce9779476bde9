package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// loses describes a way in which a probe ends without a verdict.
var loses = map[string]func(t *testing.T, r *rig){
	"client leaves while waiting": func(t *testing.T, r *rig) {
		before := len(r.U[1].started())
		r.U[1].play(hang)
		c := r.dial(t)
		c.send(request{}.String())
		r.U[1].awaitStarted(t, before+1)
		require.Equal(t, 2, r.state(r.U[1]))
		c.close()
	},
	"body cut": func(t *testing.T, r *rig) {
		before := len(r.U[1].started())
		c := r.dial(t)
		defer c.close()
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello")
		r.U[1].awaitStarted(t, before+1)
		c.fin()
		c.refused(t, 400)
	},
	"bad chunk": func(t *testing.T, r *rig) {
		before := len(r.U[1].started())
		c := r.dial(t)
		defer c.close()
		c.send(chunked("5\r\nhello\r\n"))
		r.U[1].awaitStarted(t, before+1) // a head that came later would take the next answer
		c.send("Z\r\n")
		c.refused(t, 400)
	},
	"reload meanwhile": func(t *testing.T, r *rig) {
		before := len(r.U[1].started())
		r.U[1].play(hang)
		c := r.dial(t)
		defer c.close()
		c.send(request{}.String())
		r.U[1].awaitStarted(t, before+1)
		r.reload(t, func(c *config.Config) { c.UpstreamTimeout += time.Millisecond })
	},
	"upload that ends in 504": func(t *testing.T, r *rig) {
		r.U[1].play(hang)
		r.during(t, soonTimedOut, func() {
			c := r.dial(t)
			defer c.close()
			own(t, c.do(t, request{m: "POST", body: "x"}), 504, "")
		})
	},
}

func TestCase209_LostProbeGivesItsSlotBack(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		for name, lose := range loses {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, m, threshold1)
				for range scaled(3) {
					r.fail(t, "/", r.U[1])
					pause(3 * time.Millisecond)
					opened := r.transitions(r.U[1], "open")
					lose(t, r)
					eventually(t, func() bool { return r.refusedOr200(t) == 200 }, "the probe's slot is lost")
					require.Equal(t, opened, r.transitions(r.U[1], "open"), "a probe without a verdict is no failure")
				}
			})
		}
	})
}

func TestCase209_ProbeLostWhileDialling(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1, shortConnect)
		black := r.cfg.Routes[6].Upstream
		series := func(name, more string) int {
			return int(r.metrics()[fmt.Sprintf("%s{%supstream=%q}", name, more, black)])
		}
		c := r.dial(t)
		own(t, c.do(t, request{path: "/black"}), 502, "")
		opened := series("ferryman_circuit_transitions_total", `to="open",`)
		require.Equal(t, 1, opened)
		pause(3 * time.Millisecond)
		lost := r.dial(t)
		lost.send(request{path: "/black"}.String())
		eventually(t, func() bool { return series("ferryman_circuit_state", "") == 2 }, "no probe")
		lost.close()
		eventually(t, func() bool { return c.do(t, request{path: "/black"}).status == 502 }, "the probe's slot is lost")
	})
}

func TestCase209_UpstreamRemovedAndAddedAgain(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		before := len(r.U[1].started())
		r.U[1].play(hang)
		c := r.dial(t)
		c.send(request{}.String())
		r.U[1].awaitStarted(t, before+1)
		root := r.cfg.Routes[0]
		r.reload(t, func(c *config.Config) { c.Routes = c.Routes[1:] })
		require.Empty(t, r.seriesOf(r.U[1].addr), "series of an upstream that is gone")
		r.reload(t, func(c *config.Config) { c.Routes = append(c.Routes, root) })
		require.Zero(t, r.state(r.U[1]))
		require.Equal(t, 200, r.get(t, "/").status)
		c.close()
		r.U[1].gone(t, r.U[1].started()[before].conn)
		require.Equal(t, 200, r.get(t, "/").status)
		require.Zero(t, r.state(r.U[1]))
	})
}

func (r *rig) seriesOf(part string) []string {
	var found []string
	for k := range r.metrics() {
		if strings.Contains(k, part) {
			found = append(found, k)
		}
	}
	return found
}

func TestCase209_LocalAnswersNeverTakeTheSlot(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		for _, raw := range []string{"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
			"GET /../x HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: 1\r\n", 300) + "\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n"} {
			c := r.dial(t)
			c.send(raw)
			c.must(t, "GET")
			c.close()
			require.NotEqual(t, 2, r.state(r.U[1]), "%q took the slot", clip(raw))
		}
		require.Equal(t, 200, r.get(t, "/").status)
	})
}

func TestCase209_ClientThatLeavesAfterTheHeadLeavesASuccess(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 100\r\n\r\nhello"))
		c := r.dial(t)
		c.send(request{}.String())
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		_, err := c.w.responseHead("GET")
		require.NoError(t, err)
		require.Zero(t, r.state(r.U[1]), "a good final head closes the circuit")
		c.close()
		r.awaitNothingInUse(t, r.U[1])
		require.Zero(t, r.state(r.U[1]))
	})
}
