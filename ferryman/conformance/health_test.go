package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

const (
	checkInterval = 120 * time.Millisecond
	checkTimeout  = 110 * time.Millisecond
)

func checks(s *setup) { s.cfg.HealthInterval, s.cfg.HealthTimeout = checkInterval, checkTimeout }

// lenientChecks are for cases that count checks: a check that a busy machine makes late has failed too.
func lenientChecks(s *setup) {
	s.cfg.HealthInterval, s.cfg.HealthTimeout = 700*time.Millisecond, 690*time.Millisecond
}

// answers makes health checks get a raw answer.
func answers(raw string) func(*uconn, *message) { return func(c *uconn, _ *message) { c.send(raw) } }

const (
	healthy = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	sick    = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
)

// oneMode is for what does not depend on how clients are served.
func oneMode(t *testing.T, body func(t *testing.T, m mode)) { forEachMode(t, body, goroutines) }

func TestCase221_FailedChecksOpenWithoutTraffic(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, lenientChecks, func(s *setup) { s.cfg.FailureThreshold = 3; s.cfg.DefaultCooldown = time.Hour })
		r.U[1].onHealth(answers(sick))
		eventually(t, func() bool { return r.state(r.U[1]) == 1 }, "the circuit does not open")
		require.GreaterOrEqual(t, len(r.U[1].checked()), 3)
		r.refusedByCircuit(t, "/")
		require.Zero(t, r.state(r.U[2]))
		r.U[1].onHealth(nil)
		eventually(t, func() bool { return r.state(r.U[1]) == 0 }, "the circuit does not close") // 218
		require.Equal(t, 200, r.get(t, "/").status)
		require.Zero(t, r.transitions(r.U[1], "half_open"))
	})
}

func TestCase221_AlternatingChecksNeverOpen(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, lenientChecks, func(s *setup) { s.cfg.FailureThreshold = 2 })
		var n atomic.Int32
		r.U[1].onHealth(func(c *uconn, _ *message) {
			if n.Add(1)%2 == 1 {
				c.send(sick)
			} else {
				c.send(healthy)
			}
		})
		eventually(t, func() bool { return n.Load() >= 6 }, "no checks")
		require.Zero(t, r.transitions(r.U[1], "open"))
	})
}

func TestCase222_UpstreamsStartAlive(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		alive := fmt.Sprintf("ferryman_upstream_alive{upstream=%q}", r.down)
		require.Equal(t, 1.0, r.metrics()[alive])
		added := newUpstream(t, "added")
		t.Cleanup(added.close)
		r.reload(t, func(c *config.Config) {
			c.Routes = append(c.Routes, config.Route{Prefix: "/added", Upstream: added.addr})
		})
		require.Equal(t, 1.0, r.metrics()[fmt.Sprintf("ferryman_upstream_alive{upstream=%q}", added.addr)])
		require.Zero(t, r.state(added))
	})
}

func TestCase223_HangingChecksEndOneAtATime(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks)
		var now, most atomic.Int32
		r.U[1].onHealth(func(c *uconn, _ *message) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			c.drain() // until the checker gives up
		})
		eventually(t, func() bool { return len(r.U[1].checked()) >= scaled(8) }, "checks do not go on")
		require.LessOrEqual(t, most.Load(), int32(2), "checks overlap") // the end of one and the start of the next may cross
		c := r.cfg
		c.HealthTimeout = c.HealthInterval
		require.Error(t, r.proxy.Reload(c))
		_, err := ferryman.New(c, ferryman.Options{})
		require.Error(t, err)
	})
}

func TestCase224_WhatIsUp(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = time.Hour })
		u := r.U[1]
		// On a busy machine a check may time out: every step ends in the state that it must lead to.
		for _, bad := range []string{"HTTP/1.1 500 X\r\n\r\n", "HTTP/1.1 503 X\r\n\r\n", "HTTP/1.1 599 X\r\n\r\n", "garbage\r\n\r\n", "", "HTTP/1.1 2\r\n\r\n"} {
			u.onHealth(func(c *uconn, _ *message) { c.send(bad); c.fin() })
			eventually(t, func() bool { return r.state(u) == 1 }, "%q must be a failure", bad)
			u.onHealth(nil)
			eventually(t, func() bool { return r.state(u) == 0 }, "200 must be up")
		}
		for _, good := range []string{"HTTP/1.1 301 X\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "HTTP/1.1 302 X\r\nLocation: /elsewhere\r\n\r\n",
			"HTTP/1.1 401 X\r\n\r\n", "HTTP/1.1 404 X\r\nContent-Length: 100000000\r\n\r\n", "HTTP/1.0 204 X\r\n\r\n", "HTTP/1.1 103 X\r\n\r\nHTTP/1.1 200 X\r\n\r\n"} {
			u.onHealth(answers(sick))
			eventually(t, func() bool { return r.state(u) == 1 }, "500 must be a failure")
			u.onHealth(answers(good))
			eventually(t, func() bool { return r.state(u) == 0 }, "%q must be up", good)
		}
		require.Empty(t, u.started(), "nothing is followed")
	})
}

func TestCase225_BytesOfACheck(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks)
		eventually(t, func() bool { return len(r.U[1].checked()) > 0 }, "no check")
		q := r.U[1].checked()[0]
		require.Equal(t, "GET /health HTTP/1.1", q.line)
		require.Equal(t, []string{r.U[1].addr}, q.values("Host"))
		require.Equal(t, []string{"ferryman/test"}, q.values("User-Agent"))
		for _, f := range q.fields {
			require.False(t, len(f.name) > 12 && f.name[:12] == "X-Forwarded-", "%q", f.line)
			require.NotEqual(t, "Via", f.name)
		}
		c := r.U[1].connections()[q.conn]
		c.mu.Lock()
		defer c.mu.Unlock()
		require.True(t, bytes.HasPrefix(c.log, []byte("GET /health HTTP/1.1\r\n")))
	})
}

// Cases 226 and 227.
func TestCase226And227_ReloadsAndTheInterval(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.HealthInterval, s.cfg.HealthTimeout = time.Second, 900*time.Millisecond })
		eventually(t, func() bool { return len(r.U[1].checked()) >= 1 }, "no check")
		for range 20 {
			r.reload(t, func(c *config.Config) { c.UpstreamTimeout += time.Millisecond })
		}
		start, before := time.Now(), len(r.U[1].checked())
		eventually(t, func() bool { return len(r.U[1].checked()) >= before+3 }, "no checks after reloads")
		require.GreaterOrEqual(t, time.Since(start), 1500*time.Millisecond, "reloads multiply checks")
		// A shorter interval is in effect within one old one.
		r.reload(t, func(c *config.Config) { c.HealthInterval, c.HealthTimeout = checkInterval/6, checkTimeout/10 })
		start, before = time.Now(), len(r.U[1].checked())
		eventually(t, func() bool { return len(r.U[1].checked()) >= before+30 }, "the new interval is not in effect")
		require.Less(t, time.Since(start), 15*time.Second)
	})
}

func TestCase228_EverythingDownAndBack(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = time.Hour })
		for _, u := range r.U[1:4] {
			u.onHealth(answers(sick))
		}
		for _, u := range r.U[1:4] {
			eventually(t, func() bool { return r.state(u) == 1 }, "%s stays up", u.name)
		}
		for _, path := range []string{"/", "/api", "/api/v1"} {
			r.refusedByCircuit(t, path)
		}
		for _, u := range r.U[1:4] {
			u.onHealth(nil)
		}
		for i, path := range []string{"/", "/api", "/api/v1"} {
			eventually(t, func() bool {
				c := r.dial(t)
				defer c.close()
				return r.state(r.U[1+i]) == 0 && c.do(t, request{path: path}).status == 200
			}, "%s stays down", path)
		}
	})
}

func TestCase229_OneLateCheckIsForgiven(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) {
			s.cfg.FailureThreshold = 3
			s.cfg.HealthInterval, s.cfg.HealthTimeout = 400*time.Millisecond, 350*time.Millisecond
		})
		var n atomic.Int32
		r.U[1].onHealth(func(c *uconn, _ *message) {
			if n.Add(1) == 2 {
				c.drain() // too late
				return
			}
			c.send(healthy)
		})
		eventually(t, func() bool { return n.Load() >= 6 }, "no checks")
		require.Zero(t, r.transitions(r.U[1], "open"))
	})
}

func TestCase230_ChecksAreSpreadOverTheInterval(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		const n = 30
		const interval = 600 * time.Millisecond
		var mu sync.Mutex
		var times []time.Time
		var ups []*upstream
		for i := range n {
			u := newUpstream(t, fmt.Sprint("S", i))
			t.Cleanup(u.close)
			var once sync.Once
			u.onHealth(func(c *uconn, _ *message) {
				once.Do(func() {
					mu.Lock()
					times = append(times, time.Now())
					mu.Unlock()
				})
				c.send(healthy)
			})
			ups = append(ups, u)
		}
		newRig(t, m, func(s *setup) {
			s.cfg.HealthInterval, s.cfg.HealthTimeout = interval, interval/2
			for i, u := range ups {
				s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: fmt.Sprint("/s", i), Upstream: u.addr})
			}
		})
		eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(times) == n }, "not every upstream is checked")
		slices.SortFunc(times, time.Time.Compare)
		require.Greater(t, times[n-1].Sub(times[0]), interval/3, "all checks at once")
	})
}

func TestCase218_FailedChecksDoNotExtendTheCooldown(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) {
			s.cfg.FailureThreshold = 1
			s.cfg.DefaultCooldown = 5 * checkInterval
			s.cfg.HealthInterval, s.cfg.HealthTimeout = checkInterval, checkTimeout
		})
		r.U[1].onHealth(answers(sick))
		eventually(t, func() bool { return r.state(r.U[1]) == 1 }, "the circuit does not open")
		eventually(t, func() bool { return r.refusedOr200(t) == 200 }, "failed checks extend the cooldown")
		require.Greater(t, len(r.U[1].checked()), 1, "no check failed while open")
	})
}
