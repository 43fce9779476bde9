package pool

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// MaxIdle bounds the idle connections of one executor. It is what a burst may leave behind; the next Filter takes it
// down.
const MaxIdle = 512

// Pool is the idle connections of all executors. New makes it; its methods that take an executor are called by
// coroutines of that one, the others from any goroutine.
type Pool[C io.Closer] struct {
	dial   func(ex netloop.Executor, timeout time.Duration) (C, error)
	spare  func(ex netloop.Executor, c C)
	stacks []stack[C] // by executor index
}

// New returns a pool for executors with an index under executors. dial makes a connection within timeout; one that
// nobody waits for any more is passed to spare.
func New[C io.Closer](executors int, dial func(netloop.Executor, time.Duration) (C, error), spare func(netloop.Executor, C)) *Pool[C] {
	p := &Pool[C]{dial: dial, spare: spare, stacks: make([]stack[C], executors)}
	for i := range p.stacks {
		p.stacks[i].maxDials = max(leastDials, MaxDials/executors)
	}
	return p
}

// stack is the idle connections and the waiters of one executor. A loop has its own, so its lock is rarely contended;
// goroutines share one. A scrape of the metrics reads size, without the lock.
type stack[C io.Closer] struct {
	size     atomic.Int64 // len(idle), for readers without the lock
	maxDials int

	mu      sync.Mutex // guards what follows
	idle    []C
	ex      netloop.Executor // the executor whose connections these are; nil until somebody waits for the first
	waiting queue[C]         // while it is not empty, nothing is pooled unless all in it want fresh ones
	dials   int              // under way
}

// Idle counts the connections.
func (p *Pool[C]) Idle() (n int) {
	for i := range p.stacks {
		n += int(p.stacks[i].size.Load())
	}
	return n
}

// Waiting counts those that wait on an executor.
func (p *Pool[C]) Waiting(ex netloop.Executor) int {
	s := &p.stacks[ex.Index()]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.n
}

// Pop takes the newest connection.
func (p *Pool[C]) Pop(ex netloop.Executor) (c C, ok bool) {
	s := &p.stacks[ex.Index()]
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle)
	if n == 0 {
		return c, false
	}
	var none C
	c, s.idle[n-1] = s.idle[n-1], none
	s.idle = s.idle[:n-1]
	s.size.Store(int64(n - 1))
	return c, true
}

// Push hands c to the waiter that has waited longest, or keeps it, in place of the oldest where there are too many.
// taken: a waiter has it.
func (p *Pool[C]) Push(ex netloop.Executor, c C) (taken bool) {
	taken, oldest, full := p.stacks[ex.Index()].push(c)
	if full {
		oldest.Close()
	}
	return taken
}

func (s *stack[C]) push(c C) (taken bool, oldest C, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiting.first; w != nil; w = w.next {
		if !w.fresh {
			s.wake(w, c, nil)
			return true, oldest, false
		}
	}
	if len(s.idle) >= MaxIdle {
		oldest = s.idle[0]
		copy(s.idle, s.idle[1:])
		s.idle[len(s.idle)-1] = c
		return false, oldest, true
	}
	s.idle = append(s.idle, c)
	s.size.Store(int64(len(s.idle)))
	return false, oldest, false
}

// Filter closes the connections that are not to be kept. keep is called on the executor whose connections they are,
// with its time, soon.
func (p *Pool[C]) Filter(keep func(c C, now time.Time) bool) {
	p.each(func(s *stack[C]) { s.filter(keep) })
}

func (s *stack[C]) filter(keep func(C, time.Time) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.idle[:0]
	for _, c := range s.idle {
		if keep(c, s.ex.Now()) {
			kept = append(kept, c)
			continue
		}
		c.Close()
	}
	clear(s.idle[len(kept):])
	s.idle = kept
	s.size.Store(int64(len(kept)))
}

// FailWaiters ends all waits with err, soon.
func (p *Pool[C]) FailWaiters(err error) { p.each(func(s *stack[C]) { s.failAll(err) }) }

// each runs f for every stack in use, on the executor whose connections it holds.
func (p *Pool[C]) each(f func(*stack[C])) {
	for i := range p.stacks {
		s := &p.stacks[i]
		s.mu.Lock()
		ex := s.ex
		s.mu.Unlock()
		if ex != nil {
			ex.Post(func() { f(s) })
		}
	}
}
