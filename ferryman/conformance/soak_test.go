package conformance

import (
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// The soak runs everything at once: clients of both protocols that leave in the middle, upstreams that
// flap, circuits that trip, a reload every 200 ms. Then it does the accounts. FERRYMAN_SOAK=5m sets how
// long; it is always run.
//
//	/steady  an upstream that is always well: here no answer may fail, and no 5xx may be counted
//	/moves   leads to the steady one, and after every other reload to one that is otherwise not configured
//	/flap    an upstream of many moods
//	/hang    one that never answers
//	/down    a closed port

const (
	soakReload   = 200 * time.Millisecond
	soakTimeout  = 3 * time.Second // of /hang; a loaded machine must not take so long for /steady
	soakCooldown = 100 * time.Millisecond
	soakH1       = 5 // connections at once
	soakH2       = 2
	soakStreams  = 4 // on each of the latter
)

func soakDuration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FERRYMAN_SOAK")
	if text == "" {
		return 4 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "FERRYMAN_SOAK is a duration, such as 30s")
	require.Positive(t, d)
	return d
}

// TestCase282_Soak does not run beside other tests, so that it can count for the whole process.
func TestCase282_Soak(t *testing.T) {
	d := soakDuration(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the first one of a process costs descriptors
	require.NoError(t, err)
	ln.Close()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	t.Run("load", func(t *testing.T) {
		for _, m := range modes() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				newSoak(t, m).run(d)
			})
		}
	})
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 && descriptors() <= files },
		"the process has %d goroutines, %d before; %d descriptors, %d before", runtime.NumGoroutine(), goroutines, descriptors(), files)
}

type soak struct {
	t                           *testing.T
	r                           *rig
	steady, guest, flappy, mute *soakUpstream
	down                        string
	over                        atomic.Bool
	hang                        sync.Mutex // one request at a time hangs
	workers                     sync.WaitGroup
	reloads                     int

	mu       sync.Mutex // guards what follows
	routes   map[string]*soakTally
	failures int
}

// soakTally is what the clients know of one route's requests.
type soakTally struct {
	answered map[int]int // by status; a head that was read counts
	left     int         // clients that went away, whenever that was
	unknown  int         // those of them that do not know whether they were answered
}

func newSoak(t *testing.T, m mode) *soak {
	s := &soak{t: t, routes: map[string]*soakTally{}}
	for u, act := range map[**soakUpstream]soakAct{
		&s.steady: soakWell, &s.guest: soakWell, &s.flappy: soakMoody, &s.mute: soakMute,
	} {
		*u = newSoakUpstream(s, act)
		t.Cleanup((*u).close)
	}
	s.r = newRig(t, m, func(x *setup) {
		x.cfg.HealthInterval, x.cfg.HealthTimeout = time.Second, 950*time.Millisecond
		x.cfg.FailureThreshold, x.cfg.DefaultCooldown = 3, soakCooldown
		x.cfg.UpstreamTimeout = soakTimeout
		s.down = x.cfg.Routes[slices.IndexFunc(x.cfg.Routes, func(r config.Route) bool { return r.Prefix == "/down" })].Upstream
		x.cfg.Routes = s.table(true)
	})
	return s
}

func (s *soak) table(first bool) []config.Route {
	moves := config.Route{Prefix: "/moves", Upstream: s.steady.addr}
	if !first {
		moves = config.Route{Prefix: "/moves", Upstream: s.guest.addr, StripPrefix: true}
	}
	return []config.Route{
		{Prefix: "/steady", Upstream: s.steady.addr}, moves, {Prefix: "/flap", Upstream: s.flappy.addr},
		{Prefix: "/hang", Upstream: s.mute.addr}, {Prefix: "/down", Upstream: s.down},
	}
}

func (s *soak) run(d time.Duration) {
	memory := liveHeap()
	for range soakH1 {
		s.workers.Go(s.clientH1)
	}
	for range soakH2 {
		s.workers.Go(s.clientH2)
	}
	tick := time.NewTicker(soakReload)
	defer tick.Stop()
	for end := time.After(d); !s.over.Load(); {
		select {
		case <-tick.C:
			s.reload()
			s.gauges()
		case <-end:
			s.over.Store(true)
		}
		if s.failed() {
			s.over.Store(true)
		}
	}
	s.workers.Wait()
	s.settle()
	s.accounts()
	assert.Less(s.t, liveHeap(), memory+32<<20, "memory")
}

// liveHeap is what two collections leave, in bytes; after the first, pools still hold something.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// reload alternates between two tables and some other settings.
func (s *soak) reload() {
	s.reloads++
	s.r.reload(s.t, func(c *config.Config) {
		first := s.reloads%2 == 0
		c.Routes = s.table(first)
		c.FailureThreshold, c.DefaultCooldown, c.BodyIdleTimeout = 3, soakCooldown, 0
		if !first {
			slices.Reverse(c.Routes)
			c.FailureThreshold, c.DefaultCooldown, c.BodyIdleTimeout = 4, soakCooldown*3/2, patience
		}
	})
}

// fail notes a failure; after some of them the soak ends.
func (s *soak) fail(format string, args ...any) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures++; s.failures <= 10 {
		s.t.Errorf(format, args...)
	}
}

func (s *soak) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures >= 10
}

func (s *soak) count(o order, f func(*soakTally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.routes[o.route]
	if r == nil {
		r = &soakTally{answered: map[int]int{}}
		s.routes[o.route] = r
	}
	f(r)
}

// left counts a client that went away before it knew of an answer to o.
func (s *soak) left(o order) { s.count(o, func(r *soakTally) { r.left++; r.unknown++ }) }
