package ferryman

import (
	"sync"
	"sync/atomic"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// clientState is where a client's connection stands, as drain and gauges see it.
type clientState = int32

const (
	clientIdle   clientState = iota // between requests; a drain may close it
	clientActive                    // a request is being served
	clientClosed                    // by the drain or by its own end
)

// client is the entry of one connection.
type client struct {
	state atomic.Int32
	abort func() // ends the connection; safe from any goroutine
	// drain begins the goodbye of a connection that can say one; nil: state alone decides.
	drain func()
}

func newClient(conn netloop.Conn) *client { return &client{abort: conn.Abort} }

// begin marks a request in service. false: the drain was faster.
func (c *client) begin() bool { return c.state.CompareAndSwap(clientIdle, clientActive) }

// clients are the connections that exist, up to a limit.
type clients struct {
	draining atomic.Bool
	mu       sync.Mutex // guards all
	all      map[*client]struct{}
	empty    chan struct{} // closed when the last connection goes during a drain; nil before
}

// add enters c. false: limit (0: none) is reached, or the drain has begun.
func (s *clients) add(c *client, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() || limit > 0 && len(s.all) >= limit {
		return false
	}
	if s.all == nil {
		s.all = make(map[*client]struct{})
	}
	s.all[c] = struct{}{}
	return true
}

// during keeps c as long as serve lasts, and after it if the connection goes on elsewhere.
func (s *clients) during(c *client, serve func() (goesOn bool)) {
	goesOn := false
	defer func() {
		if !goesOn {
			s.remove(c)
		}
	}()
	goesOn = serve()
}

// abortBy has c, which is elsewhere now, ended by abort.
func (s *clients) abortBy(c *client, abort func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.abort = abort
}

func (s *clients) remove(c *client) {
	c.state.Store(clientClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
	if s.empty != nil && len(s.all) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

// count reads the two gauges.
func (s *clients) count() (active, idle int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		switch c.state.Load() {
		case clientActive:
			active++
		case clientIdle:
			idle++
		}
	}
	return active, idle
}

// drain closes what is idle and returns a channel that is closed once nothing is left.
func (s *clients) drain() <-chan struct{} {
	s.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	empty := make(chan struct{})
	if len(s.all) == 0 {
		close(empty)
		return empty
	}
	s.empty = empty
	for c := range s.all {
		switch {
		case c.drain != nil:
			c.drain()
		case c.state.CompareAndSwap(clientIdle, clientClosed):
			c.abort()
		}
	}
	return empty
}

// cutAll ends what is left and returns how many connections that were.
func (s *clients) cutAll() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		c.abort()
	}
	return len(s.all)
}
