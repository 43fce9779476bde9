package netloop

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// sweepTick is the time between two checks of the guards: one that is older than a tick
	// fires at most two ticks after the peer has gone.
	sweepTick = 25 * time.Millisecond
	// maxUnusedTicks is for how many ticks an unused guard stays listed: a busy connection sets
	// and clears its guard all the time and should not pay for the list each time.
	maxUnusedTicks = 40
)

// sweeper watches the guards of the Goroutines engine. A goroutine exists only while there are
// any. A request that is over before the second tick costs no system call.
type sweeper struct {
	tick    atomic.Uint32 // advanced by the sweeper, read by guards as they are set
	stop    <-chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex // guards what follows
	active bool
	conns  []*goConn
}

// guard is one connection's part of it.
type guard struct {
	// mu is held while a victim is aborted: once set or end has returned, the former victim is
	// safe and may be used for something else.
	mu     sync.Mutex
	victim Aborter
	reset  bool   // only an error of the connection counts
	since  uint32 // the tick in which victim was set
	unused int    // ticks without a victim
	listed bool   // in sweeper.conns, or about to be
	ended  bool
}

func (t *guard) set(c *goConn, victim Aborter, reset bool) {
	s := &c.g.guards
	t.mu.Lock()
	t.victim, t.reset, t.since = victim, reset, s.tick.Load()
	join := victim != nil && !t.listed && !t.ended && c.raw != nil
	t.listed = t.listed || join
	t.mu.Unlock()
	if join {
		s.add(c)
	}
}

func (t *guard) end() {
	t.mu.Lock()
	t.victim, t.ended = nil, true
	t.mu.Unlock()
}

// check is the sweeper's visit. It returns false if c needs no more of them.
func (t *guard) check(c *goConn, tick uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.victim == nil {
		t.unused++
		t.listed = !t.ended && t.unused < maxUnusedTicks
		return t.listed
	}
	t.unused = 0
	if tick-t.since < 2 {
		return true
	}
	if gone, broken := c.peer(); broken || gone && !t.reset {
		t.victim.Abort()
		t.victim = nil
	}
	return true
}

func (s *sweeper) add(c *goConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	if !s.active {
		s.active = true
		s.running.Add(1)
		go s.run()
	}
}

func (s *sweeper) run() {
	defer s.running.Done()
	t := time.NewTicker(sweepTick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.stop: // nothing is served any more
			return
		}
		if !s.sweep() {
			return
		}
	}
}

// sweep visits all listed guards. It returns false, and marks the sweeper as stopped, when no
// guard is left. The list's lock is not held during the visits, for they ask the kernel.
func (s *sweeper) sweep() bool {
	tick := s.tick.Add(1)
	s.mu.Lock()
	visit := s.conns
	s.conns = nil
	s.mu.Unlock()

	kept := visit[:0]
	for _, c := range visit {
		if c.guard.check(c, tick) {
			kept = append(kept, c)
		}
	}
	clear(visit[len(kept):])

	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(kept, s.conns...)
	if s.active = len(s.conns) > 0; !s.active {
		s.conns = nil
	}
	return s.active
}
