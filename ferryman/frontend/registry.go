package frontend

import (
	"sync"
	"sync/atomic"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// connState is where a client's connection stands, as drain and gauges see it.
type connState = int32

const (
	connIdle   connState = iota // between requests; a drain may close it
	connActive                  // a request is being served
	connClosed                  // by the drain or by its own end
)

// entry is a connection's place in the registry.
type entry struct {
	state atomic.Int32
	abort func() // ends the connection; safe from any goroutine
	// drain begins a connection's own graceful shutdown; nil: state alone decides.
	drain func()
}

func newEntry(conn netloop.Conn) *entry { return &entry{abort: conn.Abort} }

// begin marks a request in service. false: the drain was faster.
func (c *entry) begin() bool { return c.state.CompareAndSwap(connIdle, connActive) }

// registry is the connections that exist, up to a limit.
type registry struct {
	draining atomic.Bool
	mu       sync.Mutex // guards all
	all      map[*entry]struct{}
	empty    chan struct{} // closed when the last connection goes during a drain; nil before
}

// add enters c. false: limit (0: none) is reached, or the drain has begun.
func (r *registry) add(c *entry, limit int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining.Load() || limit > 0 && len(r.all) >= limit {
		return false
	}
	if r.all == nil {
		r.all = make(map[*entry]struct{})
	}
	r.all[c] = struct{}{}
	return true
}

// during runs serve, then removes c unless the connection was handed over.
func (r *registry) during(c *entry, serve func() (goesOn bool)) {
	goesOn := false
	defer func() {
		if !goesOn {
			r.remove(c)
		}
	}()
	goesOn = serve()
}

// drainBy sets the function that begins a drain of c.
func (r *registry) drainBy(c *entry, drain func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.drain = drain
}

// abortBy replaces c's abort function when the connection has moved.
func (r *registry) abortBy(c *entry, abort func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.abort = abort
}

func (r *registry) remove(c *entry) {
	c.state.Store(connClosed)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, c)
	if r.empty != nil && len(r.all) == 0 {
		close(r.empty)
		r.empty = nil
	}
}

// count reads the two gauges.
func (r *registry) count() (active, idle int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.all {
		switch c.state.Load() {
		case connActive:
			active++
		case connIdle:
			idle++
		}
	}
	return active, idle
}

// drain closes what is idle and returns a channel that is closed once nothing is left.
func (r *registry) drain() <-chan struct{} {
	r.draining.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	empty := make(chan struct{})
	if len(r.all) == 0 {
		close(empty)
		return empty
	}
	r.empty = empty
	for c := range r.all {
		switch {
		case c.drain != nil:
			c.drain()
		case c.state.CompareAndSwap(connIdle, connClosed):
			c.abort()
		}
	}
	return empty
}

// abortAll ends what is left and returns how many connections that were.
func (r *registry) abortAll() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.all {
		c.abort()
	}
	return len(r.all)
}
