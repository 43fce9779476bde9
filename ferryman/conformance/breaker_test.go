package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

// threshold3 is the breaker of the rig as the cases describe it: N 3, a cooldown that one can wait for.
func threshold3(s *setup) {
	s.cfg.FailureThreshold = 3
	s.cfg.DefaultCooldown = cooldown
}

// stayOpen lets the first failure open a circuit for the rest of the case.
func stayOpen(s *setup) {
	s.cfg.FailureThreshold = 1
	s.cfg.DefaultCooldown = time.Hour
}

func (r *rig) refusedByCircuit(t testing.TB, path string) *message {
	t.Helper()
	c := r.dial(t)
	defer c.close()
	resp := c.do(t, request{path: path})
	own(t, resp, 503, "upstream unavailable")
	return resp
}

func TestCase204_ConsecutiveFailuresOpen(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold3, func(s *setup) { s.cfg.DefaultCooldown = time.Hour })
		u := r.U[1]
		for range 3 {
			r.fail(t, "/", u)
			r.fail(t, "/", u)
			require.Equal(t, 200, r.get(t, "/").status)
		}
		r.fail(t, "/", u)
		r.fail(t, "/", u)
		require.Zero(t, r.state(u))
		r.fail(t, "/", u)
		require.Equal(t, 1, r.state(u))
		before := len(u.started())
		r.refusedByCircuit(t, "/")
		require.Len(t, u.started(), before)
		require.Equal(t, 200, r.get(t, "/api").status, "other upstreams do not notice")
		require.Equal(t, 1, r.transitions(u, "open"))
		require.Zero(t, r.metrics()[fmt.Sprintf("ferryman_upstream_alive{upstream=%q}", u.addr)])
	})
}

func TestCase205_OpenRefusesForTheWholeCooldown(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = cooldown })
		u := r.U[1]
		opened := time.Now()
		r.fail(t, "/", u)
		conns, heads := len(u.connections()), len(u.started())
		c := r.dial(t)
		for time.Since(opened) < cooldown*8/10 {
			c.send(request{}.String())
			resp := c.must(t, "GET")
			if time.Since(opened) >= cooldown {
				break // this machine stalled: the answer may be of either state
			}
			own(t, resp, 503, "upstream unavailable")
		}
		require.Len(t, u.connections(), conns)
		require.LessOrEqual(t, len(u.started()), heads+1)
		eventually(t, func() bool { return c.do(t, request{}).status == 200 }, "the circuit does not close")
		require.GreaterOrEqual(t, time.Since(opened), cooldown*9/10)

	})
}

func TestCase205_OpenCircuitReadsNoBody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, stayOpen)
		r.fail(t, "/", r.U[1])
		big := r.dial(t)
		wait := big.sendAside(append([]string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\n"}, blocks(strings.Repeat("b", 64<<10), 1600)...)...)
		resp := big.must(t, "POST")
		own(t, resp, 503, "")
		require.Equal(t, []string{"close"}, resp.values("Connection"))
		big.close()
		wait()
		require.Less(t, big.bytesSent.Load(), int64(bufferMax), "a body that nobody wants is not read")
	})
}

func TestCase206_OneProbe(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		u := r.U[1]
		var clients []*client
		for range 24 {
			clients = append(clients, r.dial(t))
		}
		for round := range scaled(12) {
			r.fail(t, "/", u)
			before := len(u.started())
			pause(3 * time.Millisecond)
			release := make(chan struct{})
			u.play(func(c *uconn, q *message) bool { <-release; return echo(c, q) })
			var served, refused atomic.Int32
			var wg sync.WaitGroup
			for _, c := range clients {
				wg.Go(func() {
					c.send(request{}.String())
					resp, err := c.response("GET")
					switch {
					case err == nil && resp.status == 200:
						served.Add(1)
					case err == nil && resp.status == 503:
						refused.Add(1)
					}
				})
			}
			ok := within(patience, func() bool { return int(refused.Load()) == len(clients)-1 })
			arrived := within(patience, func() bool { return len(u.started()) > before })
			close(release)
			wg.Wait()
			require.True(t, ok && arrived, "round %d: %d refused, %d served", round, refused.Load(), served.Load())
			require.Len(t, u.started(), before+1, "round %d", round)
			require.Equal(t, int32(1), served.Load())
			require.Zero(t, r.state(u))
		}
	})
}

func TestCase207_ProbeDecides(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 2; s.cfg.DefaultCooldown = cooldown })
		u := r.U[1]
		r.fail(t, "/", u)
		r.fail(t, "/", u)
		require.Equal(t, 1, r.state(u))
		r.awaitCooldown(t, u)
		failed := time.Now()
		r.fail(t, "/", u) // the probe
		require.Equal(t, 1, r.state(u))
		require.Equal(t, 2, r.transitions(u, "open"))
		if resp := r.refusedOr200(t); resp != 503 {
			require.GreaterOrEqual(t, time.Since(failed), cooldown*9/10, "open for a full cooldown from the probe's failure")
		}
		eventually(t, func() bool { return r.refusedOr200(t) == 200 }, "the circuit does not close")
		require.GreaterOrEqual(t, time.Since(failed), cooldown*9/10)
		require.Zero(t, r.state(u))
		r.fail(t, "/", u)
		require.Zero(t, r.state(u), "the count starts at zero")
		require.Equal(t, 1, r.transitions(u, "closed"))
	})
}

func (r *rig) refusedOr200(t testing.TB) int {
	t.Helper()
	c := r.dial(t)
	defer c.close()
	return c.do(t, request{}).status
}

// awaitCooldown waits until a refusal says that nothing is left, which the state alone does not tell:
// it is the next request that turns open into half-open.
func (r *rig) awaitCooldown(t testing.TB, _ *upstream) {
	t.Helper()
	pause(cooldown + cooldown/10)
}

func TestCase208_ProbeThatHangs(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		u := r.U[1]
		r.fail(t, "/", u)
		pause(3 * time.Millisecond)
		before := len(u.started())
		u.play(hang)
		r.reload(t, soonTimedOut)
		probe := r.dial(t)
		probe.send(request{}.String())
		u.awaitStarted(t, before+1)
		require.Equal(t, 2, r.state(u))
		for range 10 {
			if r.state(u) == 2 {
				r.refusedByCircuitOrNext(t, before)
			}
		}
		own(t, probe.must(t, "GET"), 504, "")
		require.Equal(t, 2, r.transitions(u, "open"))
	})
}

// refusedByCircuitOrNext asserts a 503 while a probe is out; once it is back the answer may be another.
func (r *rig) refusedByCircuitOrNext(t testing.TB, before int) {
	t.Helper()
	c := r.dial(t)
	defer c.close()
	c.send(request{}.String())
	resp := c.must(t, "GET")
	if resp.status != 503 {
		require.NotEqual(t, 2, r.state(r.U[1]), "a second probe")
	}
}

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
		c := r.dial(t)
		defer c.close()
		c.send(chunked("5\r\nhello\r\nZ\r\n"))
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

// slow starts a GET that U answers when release says so: true a success, false an end without a head.
func (r *rig) slow(t *testing.T) (c *client, release chan bool) {
	t.Helper()
	release = make(chan bool, 1)
	before := len(r.U[1].started())
	r.U[1].play(func(c *uconn, q *message) bool {
		c.body(q)
		if <-release {
			return c.send(describe(q))
		}
		c.send("garbage\r\n\r\n")
		return false
	})
	c = r.dial(t)
	c.send(request{}.String())
	r.U[1].awaitStarted(t, before+1)
	return c, release
}

func TestCase210_LateResultsChangeNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = cooldown })
		u := r.U[1]
		// Failures from before the trip, when the circuit is closed again.
		a, releaseA := r.slow(t)
		b, releaseB := r.slow(t)
		d, releaseD := r.slow(t)
		r.fail(t, "/", u)
		require.Equal(t, 1, r.state(u))
		// A success from before, while open.
		releaseB <- true
		require.Equal(t, 200, b.must(t, "GET").status)
		require.Equal(t, 1, r.state(u), "a late success does not close")
		r.awaitCooldown(t, u)
		// A result from before, while a probe is out.
		probe, releaseP := r.slow(t)
		require.Equal(t, 2, r.state(u))
		releaseD <- true
		require.Equal(t, 200, d.must(t, "GET").status)
		require.Equal(t, 2, r.state(u), "a late success does not stand for the probe")
		releaseP <- true
		require.Equal(t, 200, probe.must(t, "GET").status)
		require.Zero(t, r.state(u))
		releaseA <- false
		require.Equal(t, 502, a.must(t, "GET").status)
		require.Zero(t, r.state(u), "a late failure does not open")
		require.Equal(t, 1, r.transitions(u, "open"))
	})
}

func TestCase211_FailuresOfTheTransport(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for name, h := range map[string]handler{"EOF": replyThenClose(""), "reset": replyThenReset(""), "malformed": replyThenHold("garbage\r\n\r\n"), "half a head": replyThenClose("HTTP/1.1 200 OK\r\n")} {
			require.Equal(t, failure, r.verdictOf(t, "/", r.U[1], func() {
				r.U[1].play(h)
				c := r.dial(t)
				defer c.close()
				own(t, c.do(t, request{m: "POST"}), 502, "bad gateway")
			}), name)
		}
		for name, raw := range map[string]string{"400": "GET / HTTP/1.1\r\n\r\n", "400 path": "GET /.. HTTP/1.1\r\nHost: a\r\n\r\n",
			"501": "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "417": "GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n"} {
			require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
				c := r.dial(t)
				defer c.close()
				c.send(raw)
				c.must(t, "GET")
			}), name)
		}
	})
}

func TestCase212_CancelledRequestsDoNotOpen(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold3)
		r.U[1].playAlways(hang)
		for i := range 50 {
			c := r.dial(t)
			c.send(request{}.String())
			r.U[1].awaitStarted(t, i+1)
			c.close()
		}
		r.awaitNothingInUse(t, r.U[1])
		require.Zero(t, r.state(r.U[1]))
		r.U[1].playAlways(echo)
		require.Equal(t, 200, r.get(t, "/").status)
	})
}

func TestCase213_RoutesOfOneUpstreamShareItsCircuit(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, stayOpen, func(s *setup) {
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/same", Upstream: s.cfg.Routes[1].Upstream})
		})
		r.fail(t, "/same", r.U[2])
		r.refusedByCircuit(t, "/api")
		require.Equal(t, 200, r.get(t, "/").status)
	})
}

func TestCase214_ReloadKeepsTheCircuit(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, stayOpen)
		r.fail(t, "/", r.U[1])
		r.reload(t, func(c *config.Config) { c.UpstreamTimeout += time.Second })
		r.refusedByCircuit(t, "/")
		r.reload(t, func(c *config.Config) { c.FailureThreshold = 7 })
		r.refusedByCircuit(t, "/")
		require.Equal(t, 1, r.transitions(r.U[1], "open"))
		// Another address is another circuit; the removed one takes its series along.
		addr := r.U[1].addr
		r.reload(t, func(c *config.Config) { c.Routes[0].Upstream = r.U[2].addr })
		require.Equal(t, 200, r.get(t, "/").status)
		require.Empty(t, r.seriesOf(addr))
		// Thresholds apply to a closed circuit at once.
		r.reload(t, func(c *config.Config) { c.FailureThreshold = 2 })
		r.fail(t, "/", r.U[2])
		require.Zero(t, r.state(r.U[2]))
		r.fail(t, "/", r.U[2])
		require.Equal(t, 1, r.state(r.U[2]))
	})
}

func TestCase214_ReloadDoesNotExtendTheCooldown(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = cooldown })
		r.fail(t, "/", r.U[1])
		for opened := time.Now(); time.Since(opened) < cooldown*11/10; {
			r.reload(t, func(c *config.Config) { c.UpstreamTimeout += time.Millisecond })
			pause(cooldown / 10)
		}
		require.Equal(t, 200, r.get(t, "/").status)
	})
}

func TestCase215_ImpossibleBreakersAreRejected(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold3)
		for i, change := range []func(*config.Config){
			func(c *config.Config) { c.FailureThreshold = 0 }, func(c *config.Config) { c.FailureThreshold = -1 },
			func(c *config.Config) { c.DefaultCooldown = 0 }, func(c *config.Config) { c.DefaultCooldown = -time.Second }, func(c *config.Config) { c.DefaultCooldown = 1 << 62 },
			func(c *config.Config) { c.Routes = []config.Route{{Prefix: "/", Upstream: r.U[1].addr, Cooldown: -1}} },
		} {
			c := r.cfg
			change(&c)
			require.Error(t, r.proxy.Reload(c), "%d", i)
			_, err := ferryman.New(c, ferryman.Options{Engine: m.engine})
			require.Error(t, err, "%d", i)
		}
		require.Equal(t, 6, int(r.metrics()[`ferryman_config_reloads_total{result="failure"}`]))
		require.Equal(t, 200, r.get(t, "/api").status)
	}, goroutines)
}

func TestCase219_FlappingUpstream(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		for i := range scaled(20) {
			r.fail(t, "/", r.U[1])
			require.Equal(t, i+1, r.transitions(r.U[1], "open"))
			eventually(t, func() bool { return r.refusedOr200(t) == 200 }, "stuck")
			require.Equal(t, i+1, r.transitions(r.U[1], "closed"))
			require.Equal(t, i+1, r.transitions(r.U[1], "half_open"))
		}
	})
}

func TestCase220_RefusalIsConstant(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		for _, row := range []struct {
			cooldown time.Duration
			least    int
			most     int
		}{{100 * time.Second, 90, 100}, {1500 * time.Millisecond, 1, 2}, {time.Second, 1, 1}} {
			r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = row.cooldown })
			r.fail(t, "/", r.U[1])
			resp := r.refusedByCircuit(t, "/")
			n, err := strconv.Atoi(resp.get("Retry-After"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, row.least)
			require.LessOrEqual(t, n, row.most)
			again := r.refusedByCircuit(t, "/")
			require.Equal(t, string(resp.body), string(again.body))
			require.Equal(t, resp.line, again.line)
		}
	})
}

// TestCase216_MixedTrafficLeavesALegalCircuit lets clients mix successes, failures and departures over a
// circuit that opens and closes all the time. The invariants of the breaker itself are tested in its own
// package; here the whole proxy must report its results so that they hold.
func TestCase216_MixedTrafficLeavesALegalCircuit(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 2; s.cfg.DefaultCooldown = 2 * time.Millisecond })
		u := r.U[1]
		u.playAlways(func(c *uconn, q *message) bool {
			if !c.body(q) {
				return false
			}
			switch q.target {
			case "/bad":
				return c.send("HTTP/1.1 503 X\r\nX-U: x\r\nContent-Length: 0\r\n\r\n")
			case "/hang":
				return false
			}
			return c.send(describe(q))
		})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range scaled(60) {
					c, err := r.tryDial(clientTLS, 0)
					if err != nil {
						continue
					}
					c.send(request{path: []string{"/bad", "/", "/hang", "/bad"}[(i+n)%4]}.String())
					if (i+n)%4 == 2 {
						pause(time.Millisecond)
					} else {
						_, _ = c.response("GET")
					}
					c.close()
				}
			})
		}
		wg.Wait()
		r.awaitNothingInUse(t, u)
		open, half, closed := r.transitions(u, "open"), r.transitions(u, "half_open"), r.transitions(u, "closed")
		require.LessOrEqual(t, half, open, "half-open comes from open only")
		require.LessOrEqual(t, closed, half, "without health checks a circuit closes from half-open only")
		reopened := half - closed // probes that failed, or the one that is due
		require.LessOrEqual(t, open, closed+reopened+1)
		eventually(t, func() bool { return r.refusedOr200(t) == 200 }, "the circuit does not recover")
	})
}
