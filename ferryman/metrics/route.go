package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RouteKey is the labels of a route's series.
type RouteKey struct{ Prefix, Upstream string }

// Route counts what happens to the requests of one route. Its methods may be called from any goroutine.
type Route struct {
	key      RouteKey
	usual    []int // statuses that are shown before they occur: a series that begins at 1 hides its first burst from rate()
	aborts   atomic.Uint64
	duration prometheus.Observer // nil where nothing is forwarded

	// answers[c] counts the statuses from 100c on. A hundred come into being with the first of them.
	answers [10]atomic.Pointer[[100]atomic.Uint64]
}

func newRoute(key RouteKey, duration prometheus.Observer, usual ...int) *Route {
	r := &Route{key: key, duration: duration, usual: usual}
	for _, status := range usual {
		r.class(status / 100)
	}
	return r
}

// Answered counts a request that got an answer with the given status. A status outside of 100 to 999 does
// not count.
func (r *Route) Answered(status int) {
	if status < 100 || status > 999 {
		return
	}
	r.class(status / 100)[status%100].Add(1)
}

func (r *Route) class(c int) *[100]atomic.Uint64 {
	counts := r.answers[c].Load()
	if counts == nil {
		r.answers[c].CompareAndSwap(nil, new([100]atomic.Uint64))
		counts = r.answers[c].Load()
	}
	return counts
}

// Head records the time from a request's head to the head of the upstream's response.
func (r *Route) Head(d time.Duration) {
	if r.duration != nil {
		r.duration.Observe(d.Seconds())
	}
}

// ClientAborted counts a client that went away before its answer was complete.
func (r *Route) ClientAborted() { r.aborts.Add(1) }
