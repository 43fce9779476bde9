// Package metrics is every metric of the proxy. What happens is counted through handles that are resolved
// when the routes change; what merely is (the states of circuits and connections) is read at scrape.
//
//	set := metrics.New("1.0", "abc123", runtime.Version())
//	routes := set.Sync([]metrics.RouteKey{{Prefix: "/api", Upstream: "10.0.0.7:80"}}, upstreams)
//	routes[0].Answered(200)
//	http.Handle("/metrics", set.Handler())
//
// All labels come from the configuration, so that no client can add a series.
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// bounds of the histogram, in seconds. None is a whole number: Prometheus 2 calls a bucket le="1" what
// Prometheus 3 calls le="1.0", and a rule must find it under either.
var bounds = []float64{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.5, 2.5, 7.5, 15.5, 30.5}

// Upstream is what is read of an upstream at scrape, from any goroutine.
type Upstream interface {
	Addr() string                   // "host:port", the label
	State() int                     // of its circuit: 0 closed, 1 open, 2 half-open
	Transitions(to int) uint64      // of its circuit to such a state, never decreasing
	Connections() (inUse, idle int) // of its pool
}

// Set is the metrics of one proxy. New makes it. Its methods may be called from any goroutine.
type Set struct {
	registry *prometheus.Registry
	own      []prometheus.Collector // what Register exposes elsewhere too
	state    stateCollector
	duration *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
	reloaded prometheus.Gauge
	unrouted *Route
	mu       sync.Mutex // one Sync at a time
}

// New returns a set with a registry of its own. The arguments are the labels of ferryman_build_info. The
// configuration counts as loaded now; that is no reload.
func New(version, commit, goversion string) *Set {
	s := &Set{registry: prometheus.NewRegistry(), unrouted: &Route{key: RouteKey{"none", "none"}}}
	s.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ferryman_request_duration_seconds",
		Help:    "From a request's head to the head of the upstream's response.",
		Buckets: bounds,
	}, []string{"route", "upstream"})
	s.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ferryman_config_reloads_total",
		Help: "Attempts to reload the configuration, by result.",
	}, []string{"result"})
	s.reloads.WithLabelValues("success")
	s.reloads.WithLabelValues("failure")
	s.reloaded = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ferryman_config_last_reload_success_timestamp_seconds",
		Help: "When the configuration in use was loaded, in Unix time.",
	})
	s.reloaded.SetToCurrentTime()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "ferryman_build_info",
		Help:        "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": goversion},
	})
	build.Set(1)
	s.state.live.Store(&live{routes: []*Route{s.unrouted}})
	s.own = []prometheus.Collector{&s.state, s.duration, s.reloads, s.reloaded, build}
	s.registry.MustRegister(s.own...)
	s.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Register exposes the same metrics through another registerer as well, except for those of the Go runtime
// and of the process, which a program has only once.
func (s *Set) Register(r prometheus.Registerer) error {
	for i, c := range s.own {
		if err := r.Register(c); err != nil {
			for _, done := range s.own[:i] {
				r.Unregister(done)
			}
			return err
		}
	}
	return nil
}

// Handler serves the metrics in the text format or, to who asks for it, as OpenMetrics.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Connections sets where the numbers of client connections are read at each scrape; without it they are 0.
func (s *Set) Connections(f func() (active, idle int)) { s.state.connections.Store(&f) }

// Sync makes routes and upstreams the ones that are shown, and returns the handles of the routes in their
// order. A route or upstream that was there before goes on counting; the series of one that is gone
// disappear, and what its old handle counts is lost.
func (s *Set) Sync(routes []RouteKey, ups []Upstream) []*Route {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[RouteKey]*Route{}
	for _, r := range s.state.live.Load().routes[1:] {
		gone[r.key] = r
	}
	next := &live{routes: []*Route{s.unrouted}, upstreams: append([]Upstream(nil), ups...)}
	for _, key := range routes {
		r := gone[key]
		if r == nil {
			r = &Route{key: key, duration: s.duration.WithLabelValues(key.Prefix, key.Upstream)}
		}
		delete(gone, key)
		next.routes = append(next.routes, r)
	}
	s.state.live.Store(next)
	for key := range gone {
		s.duration.DeleteLabelValues(key.Prefix, key.Upstream)
	}
	return next.routes[1:]
}

// Unrouted is the handle for requests that match no route; its labels are "none".
func (s *Set) Unrouted() *Route { return s.unrouted }

// Reloaded counts a reload that ended at time now.
func (s *Set) Reloaded(ok bool, now time.Time) {
	if !ok {
		s.reloads.WithLabelValues("failure").Inc()
		return
	}
	s.reloads.WithLabelValues("success").Inc()
	s.reloaded.Set(float64(now.UnixMilli()) / 1e3)
}
