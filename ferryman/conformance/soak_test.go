package conformance

import (
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
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

// gauges is what holds at any moment.
func (s *soak) gauges() {
	m := s.r.metrics()
	clients := 0.0
	for k, v := range m {
		switch name, labels := seriesName(k); name {
		case "ferryman_circuit_state":
			assert.Contains(s.t, []float64{0, 1, 2}, v, k)
			assert.Equal(s.t, v == 0, m["ferryman_upstream_alive"+labels] == 1, k)
		case "ferryman_connections":
			clients += v
			assert.GreaterOrEqual(s.t, v, 0.0, k)
		case "ferryman_upstream_connections":
			assert.GreaterOrEqual(s.t, v, 0.0, k)
		}
	}
	// Those that have left may linger for a moment.
	assert.LessOrEqual(s.t, clients, 200.0, "client connections")
}

var seriesParts = regexp.MustCompile(`^(\w+)(\{.*\})?$`)

func seriesName(key string) (name, labels string) {
	p := seriesParts.FindStringSubmatch(key)
	if p == nil {
		return key, ""
	}
	return p[1], p[2]
}

// settle waits until the proxy is at rest: nothing in use, the flapping upstream trusted again.
func (s *soak) settle() {
	s.flappy.act.Store(new(soakAct(soakWell)))
	s.r.awaitIdle(s.t)
	for _, u := range []*soakUpstream{s.steady, s.flappy, s.mute} {
		eventually(s.t, func() bool { return s.r.metrics()[`ferryman_circuit_state{upstream="`+u.addr+`"}`] == 0 }, "%s stays open", u.addr)
	}
	eventually(s.t, func() bool {
		open := s.steady.open() + s.guest.open() + s.flappy.open() + s.mute.open()
		return int(s.r.sum("ferryman_upstream_connections", `state="idle"`)) == open
	}, "the pools and the upstreams count differently")
}

// accounts compares what the proxy has counted with what the clients know.
func (s *soak) accounts() {
	t, m := s.t, s.r.metrics()
	require.Equal(t, float64(s.reloads), m[`ferryman_config_reloads_total{result="success"}`])
	require.Zero(t, m[`ferryman_config_reloads_total{result="failure"}`])
	counted := map[string]map[int]int{"/moves": {}}
	aborts := map[string]int{}
	for k, v := range m {
		name, labels := seriesName(k)
		route := soakLabel(labels, "route")
		switch name {
		case "ferryman_requests_total":
			status, _ := strconv.Atoi(soakLabel(labels, "status"))
			if counted[route] == nil {
				counted[route] = map[int]int{}
			}
			counted[route][status] += int(v)
		case "ferryman_client_aborts_total":
			aborts[route] += int(v)
		}
	}
	counted["none"][400]-- // the rig's own
	for _, route := range slices.Sorted(maps.Keys(s.routes)) {
		known := s.routes[route]
		t.Logf("%-8s answered %v, left %d, of them unknown %d; aborts counted %d", route, known.answered, known.left, known.unknown, aborts[route])
		assert.LessOrEqual(t, aborts[route], known.left, "%s: aborts counted", route)
		if route == "/moves" {
			continue // its series go with every reload
		}
		more := 0
		for status := range maps.Keys(counted[route]) {
			n := counted[route][status] - known.answered[status]
			assert.GreaterOrEqual(t, n, 0, "%s: answers with %d that were not counted", route, status)
			assert.False(t, n > 0 && status >= 500 && route == "/steady", "%s: %d aborts counted as %d", route, n, status)
			more += n
		}
		for status := range known.answered {
			assert.Contains(t, counted[route], status, "%s: answers with %d that were not counted", route, status)
		}
		assert.LessOrEqual(t, more, known.unknown, "%s: counted %v, answered %v", route, counted[route], known.answered)
	}
	for _, addr := range []string{s.steady.addr, s.flappy.addr, s.mute.addr, s.down} {
		s.circuit(m, addr)
	}
}

func soakLabel(labels, name string) string {
	p := regexp.MustCompile(name + `="([^"]*)"`).FindStringSubmatch(labels)
	if p == nil {
		return ""
	}
	return p[1]
}

// circuit checks that the changes of a circuit can be put in a row which begins with closed.
func (s *soak) circuit(m map[string]float64, addr string) {
	to := func(state string) int {
		return int(m[fmt.Sprintf("ferryman_circuit_transitions_total{to=%q,upstream=%q}", state, addr)])
	}
	state := int(m[fmt.Sprintf("ferryman_circuit_state{upstream=%q}", addr)])
	open, half, closed := to("open"), to("half_open"), to("closed")
	s.t.Logf("circuit of %s: state %d, opened %d, half-open %d, closed %d", addr, state, open, half, closed)
	again := open - closed - min(state, 1) // opened by a probe that failed
	assert.True(s.t, again >= 0 && again <= half && half <= open, "no such row of states")
	switch addr {
	case s.steady.addr:
		assert.Zero(s.t, open)
	case s.down:
		assert.Positive(s.t, open)
	}
}
