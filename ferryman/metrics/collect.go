package metrics

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	requestsDesc    = desc("requests_total", "Requests that were answered.", "route", "upstream", "status")
	abortsDesc      = desc("client_aborts_total", "Clients that left early.", "route", "upstream")
	aliveDesc       = desc("upstream_alive", "1 where the circuit is closed, else 0.", "upstream")
	circuitDesc     = desc("circuit_state", "0 closed, 1 open, 2 half-open.", "upstream")
	transitionsDesc = desc("circuit_transitions_total", "Changes of a circuit's state.", "upstream", "to")
	poolDesc        = desc("upstream_connections", "Connections to an upstream.", "upstream", "state")
	connectionsDesc = desc("connections", "Client connections.", "state")
	reloadsDesc     = desc("config_reloads_total", "Reloads of the configuration.", "result")
	loadedDesc      = desc("config_last_reload_success_timestamp_seconds", "When the configuration in use was loaded.")
	linesLostDesc   = desc("log_lines_lost_total", "Log lines that were dropped because their queue was full.", "log")
	expiryDesc      = desc("certificate_expiry_timestamp_seconds", "When a certificate expires.", "name")
	shortagesDesc   = desc("local_shortages_total", "Dials that failed because this host was out of a resource.", "resource")
	buildDesc       = desc("build_info", "What is running; the value is 1.", "version", "commit", "goversion")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ferryman_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, abortsDesc, aliveDesc, circuitDesc, transitionsDesc, poolDesc, connectionsDesc, reloadsDesc,
		loadedDesc, linesLostDesc, expiryDesc, shortagesDesc, buildDesc,
	} {
		ch <- d
	}
	s.duration.Describe(ch)
}

// Collect implements prometheus.Collector.
func (s *Set) Collect(ch chan<- prometheus.Metric) {
	s.duration.Collect(ch)
	ch <- s.build
	counter(ch, reloadsDesc, s.succeeded.Load(), "success")
	counter(ch, reloadsDesc, s.failed.Load(), "failure")
	gauge(ch, loadedDesc, float64(s.loaded.Load())/1000)
	active, idle := (*s.connections.Load())()
	gauge(ch, connectionsDesc, float64(active), "active")
	gauge(ch, connectionsDesc, float64(idle), "idle")
	for name, n := range (*s.linesLost.Load())() {
		counter(ch, linesLostDesc, n, name)
	}
	for name, at := range (*s.expiries.Load())() {
		gauge(ch, expiryDesc, float64(at.Unix()), name)
	}
	short := s.shortages.Load()
	for _, r := range short.resources {
		counter(ch, shortagesDesc, short.count(r), r)
	}
	now := s.shown.Load()
	for _, r := range now.routes {
		r.collect(ch)
	}
	for _, u := range now.upstreams {
		collectUpstream(ch, u)
	}
}

func (r *Route) collect(ch chan<- prometheus.Metric) {
	counter(ch, abortsDesc, r.aborts.Load(), r.key.Prefix, r.key.Upstream)
	for class := range r.answers {
		counts := r.answers[class].Load()
		if counts == nil {
			continue
		}
		for i := range counts {
			if n, status := counts[i].Load(), 100*class+i; n > 0 || slices.Contains(r.usual, status) {
				counter(ch, requestsDesc, n, r.key.Prefix, r.key.Upstream, strconv.Itoa(status))
			}
		}
	}
}

func collectUpstream(ch chan<- prometheus.Metric, u Upstream) {
	state, alive := u.State(), 0.0 // read once: the two series must agree
	if state == 0 {
		alive = 1
	}
	gauge(ch, aliveDesc, alive, u.Addr())
	gauge(ch, circuitDesc, float64(state), u.Addr())
	for to, name := range []string{"closed", "open", "half_open"} {
		counter(ch, transitionsDesc, u.Transitions(to), u.Addr(), name)
	}
	inUse, idle := u.Connections()
	gauge(ch, poolDesc, float64(inUse), u.Addr(), "in_use")
	gauge(ch, poolDesc, float64(idle), u.Addr(), "idle")
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, v uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
