package metrics

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ferryman_"+name, help, labels, nil)
}

var (
	requestsDesc    = desc("requests_total", "Requests answered, by status.", "route", "upstream", "status")
	abortsDesc      = desc("client_aborts_total", "Clients that left before their answer was complete.", "route", "upstream")
	aliveDesc       = desc("upstream_alive", "1 where the circuit is closed, else 0.", "upstream")
	circuitDesc     = desc("circuit_state", "0 closed, 1 open, 2 half-open.", "upstream")
	transitionsDesc = desc("circuit_transitions_total", "Changes of a circuit's state, by the new state.", "upstream", "to")
	connectionsDesc = desc("connections", "Client connections.", "state")
	poolDesc        = desc("upstream_connections", "Connections to an upstream.", "upstream", "state")
)

var stateNames = [...]string{"closed", "open", "half_open"}

// stateCollector makes series at scrape out of what is live at that moment.
type stateCollector struct {
	live        atomic.Pointer[live] // written by Sync
	connections atomic.Pointer[func() (active, idle int)]
}

// live is not changed once it is stored. The first route is that of requests without one.
type live struct {
	routes    []*Route
	upstreams []Upstream
}

func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, abortsDesc, aliveDesc, circuitDesc, transitionsDesc, connectionsDesc, poolDesc} {
		ch <- d
	}
}

func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	active, idle := 0, 0
	if f := c.connections.Load(); f != nil {
		active, idle = (*f)()
	}
	gauge(connectionsDesc, active, "active")
	gauge(connectionsDesc, idle, "idle")
	now := c.live.Load()
	for _, r := range now.routes {
		counter(abortsDesc, r.aborts.Load(), r.key.Prefix, r.key.Upstream)
		for class := range r.answers {
			counts := r.answers[class].Load()
			if counts == nil {
				continue
			}
			for i := range counts {
				if n := counts[i].Load(); n > 0 {
					counter(requestsDesc, n, r.key.Prefix, r.key.Upstream, strconv.Itoa(100*class+i))
				}
			}
		}
	}
	for _, u := range now.upstreams {
		state, alive := u.State(), 0 // read once: the two gauges must agree
		if state == 0 {
			alive = 1
		}
		gauge(aliveDesc, alive, u.Addr())
		gauge(circuitDesc, state, u.Addr())
		for to, name := range stateNames {
			counter(transitionsDesc, u.Transitions(to), u.Addr(), name)
		}
		inUse, idle := u.Connections()
		gauge(poolDesc, inUse, u.Addr(), "in_use")
		gauge(poolDesc, idle, u.Addr(), "idle")
	}
}
