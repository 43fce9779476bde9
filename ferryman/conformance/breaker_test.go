package conformance

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
