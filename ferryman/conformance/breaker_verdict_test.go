package conformance

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

// slow starts a GET that U answers when release says so: true a success, false an end without a head.
func (r *rig) slow(t *testing.T) (c *client, release chan bool) {
	t.Helper()
	release = make(chan bool, 1)
	t.Cleanup(func() { // a script that nobody releases would keep a failed test from ending
		select {
		case release <- false:
		default:
		}
	})
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

// The line about a circuit that opened names the failure that was one too many, so that an operator need not guess.
func TestCircuitLog_NamesTheLastFailure(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		for want, h := range map[string]handler{
			`cause="request answered with 503"`: reply("HTTP/1.1 503 Busy\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"),
			`cause="upstream closed" error=`:    replyThenClose(""),
			`cause="malformed response" error=`: replyThenHold("garbage\r\n\r\n"),
			`cause=dial error="dial tcp `:       nil,
		} {
			r := newRig(t, m, stayOpen)
			if h == nil {
				r.U[1].close()
			} else {
				r.U[1].play(h)
			}
			c := r.dial(t)
			require.GreaterOrEqual(t, c.do(t, request{m: "POST"}).status, 502)
			c.close()
			require.Equal(t, 1, r.state(r.U[1]))
			eventually(t, func() bool { return r.log.count("circuit changed", "upstream="+r.U[1].addr, "to=open", want) == 1 }, "%s", want)
		}
	})
}
