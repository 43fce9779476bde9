package conformance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
