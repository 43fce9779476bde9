package metrics

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// bounds of the histogram in seconds. None is a whole number: Prometheus 2 has le="1" where Prometheus 3 has
// le="1.0", and rules should find the same series in both.
var bounds = []float64{
	0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.5, 2.5, 7.5, 15.5, 30.5,
}

// Upstream is what is read of an upstream at scrape, from any goroutine.
type Upstream interface {
	Addr() string                   // "host:port", the label
	State() int                     // of its circuit: 0 closed, 1 open, 2 half-open
	Transitions(to int) uint64      // of its circuit, to one of these states
	Connections() (inUse, idle int) // of its pool
}

// Set is the metrics of one proxy, and the prometheus.Collector of them. New makes it. Its methods may be
// called from any goroutine.
type Set struct {
	registry *prometheus.Registry
	page     http.Handler
	unrouted *Route
	duration *prometheus.HistogramVec
	build    prometheus.Metric

	succeeded, failed atomic.Uint64 // reloads
	loaded            atomic.Int64  // when the configuration in use was, in Unix milliseconds
	connections       atomic.Pointer[func() (active, idle int)]
	linesLost         atomic.Pointer[func() map[string]uint64]
	expiries          atomic.Pointer[func() map[string]time.Time]
	shortages         atomic.Pointer[shortages]
	shown             atomic.Pointer[shown]
	syncing           sync.Mutex // one Sync at a time
}

// shown does not change once Sync has stored it.
type shown struct {
	routes    []*Route // the first one is unrouted
	upstreams []Upstream
}

// New returns a set with a registry of its own. The arguments are the labels of ferryman_build_info. Until
// the first reload, the configuration counts as loaded now.
func New(version, commit, goversion string) *Set {
	s := &Set{registry: prometheus.NewRegistry(), unrouted: newRoute(RouteKey{"none", "none"}, nil, 400, 404)}
	s.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ferryman_request_duration_seconds",
		Help:    "From a request's head to the upstream's response head.",
		Buckets: bounds,
	}, []string{"route", "upstream"})
	s.build = prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, version, commit, goversion)
	s.loaded.Store(time.Now().UnixMilli())
	s.Connections(func() (active, idle int) { return 0, 0 })
	s.LinesLost(func() map[string]uint64 { return nil })
	s.CertificateExpiries(func() map[string]time.Time { return nil })
	s.Shortages(nil, nil)
	s.shown.Store(&shown{routes: []*Route{s.unrouted}})
	s.page = promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
	s.registry.MustRegister(s, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Register exposes the same metrics through r as well, but for those of the Go runtime and the process.
func (s *Set) Register(r prometheus.Registerer) error { return r.Register(s) }

// A page of many routes takes some MiB while it is made and sent, so few are at a time, and none for long.
const (
	maxScrapes = 3
	scrapeTime = 10 * time.Second
)

// Handler serves the page that Prometheus scrapes, to a few at a time: the rest get 503. Whoever does not
// read it in time is cut off.
func (s *Set) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		_ = conn.SetWriteDeadline(time.Now().Add(scrapeTime)) // not every writer has one
		s.page.ServeHTTP(w, r)
		if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout == 0 {
			_ = conn.Flush()
			_ = conn.SetWriteDeadline(time.Time{}) // as the next request's handler expects it
		}
	})
}

// Connections sets where the numbers of client connections are read at scrape. Before, they are 0.
func (s *Set) Connections(f func() (active, idle int)) { s.connections.Store(&f) }

// LinesLost sets where the numbers of lost log lines are read at scrape, by the name of the log.
func (s *Set) LinesLost(f func() map[string]uint64) { s.linesLost.Store(&f) }

// CertificateExpiries sets where the times are read at scrape when certificates expire, by name.
func (s *Set) CertificateExpiries(f func() map[string]time.Time) { s.expiries.Store(&f) }

// shortages is where local shortages are read.
type shortages struct {
	resources []string
	count     func(resource string) uint64
}

// Shortages sets which resources the process may be short of when it dials, and where the numbers of dials that failed
// for it are read at scrape. Before, there is none.
func (s *Set) Shortages(resources []string, count func(resource string) uint64) {
	s.shortages.Store(&shortages{resources, count})
}

// Sync says which routes and upstreams there are now, each once, and returns the handles of the routes in
// the same order. Those that were there before go on counting. The series of those that are gone disappear;
// their handles may still be used, to no effect.
func (s *Set) Sync(routes []RouteKey, ups []Upstream) []*Route {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	gone := map[RouteKey]*Route{}
	for _, r := range s.shown.Load().routes[1:] {
		gone[r.key] = r
	}
	now := &shown{routes: []*Route{s.unrouted}, upstreams: slices.Clone(ups)}
	for _, key := range routes {
		r := gone[key]
		if r == nil {
			r = newRoute(key, s.duration.WithLabelValues(key.Prefix, key.Upstream), 200, 502, 503, 504)
		}
		delete(gone, key)
		now.routes = append(now.routes, r)
	}
	for key := range gone {
		s.duration.DeleteLabelValues(key.Prefix, key.Upstream)
	}
	s.shown.Store(now)
	return slices.Clone(now.routes[1:])
}

// Unrouted is the handle for requests that no route matches; both of its labels are "none".
func (s *Set) Unrouted() *Route { return s.unrouted }

// Reloaded counts a reload of the configuration that ended at time now.
func (s *Set) Reloaded(ok bool, now time.Time) {
	if !ok {
		s.failed.Add(1)
		return
	}
	s.succeeded.Add(1)
	s.loaded.Store(now.UnixMilli())
}
