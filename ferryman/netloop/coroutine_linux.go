package netloop

import "iter"

const (
	// maxParked is how many coroutines without work a loop keeps.
	maxParked = 32
	// maxBatch is how long a queue a loop keeps when it is empty again.
	maxBatch = 4096
)

// scheduler runs the coroutines of one loop, one at a time.
type scheduler struct {
	clock
	o      *Options
	cur    *coroutine   // the one that runs
	budget int          // what is left to it
	ready  []*coroutine // to be run in the next iteration
	batch  []*coroutine // to be run in this iteration, from done on
	done   int
	live   int          // coroutines that have work
	parked []*coroutine // and some that have none
}

// coroutine runs one function after another: starting one anew for each connection costs more than
// reusing it.
type coroutine struct {
	s      *scheduler
	f      func()
	owned  *loopConn // closed if f does not return; nil if there is none
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

// start runs f as a coroutine, in the next iteration at the latest.
func (s *scheduler) start(owned *loopConn, f func()) {
	var t *coroutine
	if n := len(s.parked); n > 0 {
		t, s.parked[n-1], s.parked = s.parked[n-1], nil, s.parked[:n-1]
	} else {
		t = &coroutine{s: s}
		t.resume, t.stop = iter.Pull(t.body)
	}
	t.f, t.owned = f, owned
	s.live++
	s.ready = append(s.ready, t)
}

func (t *coroutine) body(yield func(struct{}) bool) {
	t.yield = yield
	for t.run(); len(t.s.parked) < maxParked; t.run() {
		t.s.parked = append(t.s.parked, t)
		if !yield(struct{}{}) {
			return
		}
	}
}

func (t *coroutine) run() {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			t.s.o.panicked(v)
		}
		if !returned && t.owned != nil {
			t.owned.Close()
		}
		t.f, t.owned = nil, nil
		t.s.live--
	}()
	t.f()
	returned = true
}

// runBatch resumes what is left of the batch. Where it stands is kept in the scheduler: a coroutine
// that calls runtime.Goexit ends the caller, and the next one must be able to go on.
func (s *scheduler) runBatch() {
	for s.done < len(s.batch) {
		s.cur, s.budget = s.batch[s.done], yieldBudget
		s.batch[s.done] = nil
		s.done++
		s.cur.resume()
		if s.done%32 == 0 {
			s.tick()
		}
	}
	s.cur = nil
	if cap(s.batch) > maxBatch {
		s.batch, s.done = nil, 0
	}
}

// park lets the loop go on with others until somebody wakes the current coroutine, to which it
// sets *at.
func (s *scheduler) park(at **coroutine) {
	if *at != nil {
		panic("netloop: two coroutines wait for the same thing")
	}
	*at = s.cur
	s.cur.yield(struct{}{})
}

func (s *scheduler) wake(at **coroutine) {
	if *at != nil {
		s.ready = append(s.ready, *at)
		*at = nil
	}
}

// yieldIfSpent lets others run if the current coroutine has used up its budget without waiting.
func (s *scheduler) yieldIfSpent() {
	if s.budget <= 0 {
		s.ready = append(s.ready, s.cur)
		s.cur.yield(struct{}{})
	}
}

func (s *scheduler) spend(n int) { s.budget -= n + callCost }

func (s *scheduler) release() {
	for _, t := range s.parked {
		t.stop()
	}
}

// NewEvent implements Executor.
func (s *scheduler) NewEvent() Event { return &loopEvent{s: s} }

type loopEvent struct {
	s      *scheduler
	isSet  bool
	waiter *coroutine
}

func (e *loopEvent) Set() {
	e.isSet = true
	e.s.wake(&e.waiter)
}

func (e *loopEvent) Wait() {
	for !e.isSet {
		e.s.park(&e.waiter)
	}
}
