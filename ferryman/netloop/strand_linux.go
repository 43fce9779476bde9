package netloop

import "iter"

const (
	// maxParked is how many coroutines without work a loop keeps.
	maxParked = 32
	// maxBatch is how long a queue a loop keeps when it is empty again.
	maxBatch = 4096
)

// scheduler runs the strands of one loop, each a coroutine, one at a time.
type scheduler struct {
	clock
	o      *Options
	cur    *strand   // the one that runs
	budget int       // what is left to it
	ready  []*strand // to be run in the next turn
	batch  []*strand // to be run in this turn, from done on
	done   int
	live   int       // strands that have work
	parked []*strand // and some that have none
}

// strand is a coroutine that carries one function after another: starting one anew for each
// connection costs more than the hand-over.
type strand struct {
	s      *scheduler
	f      func()
	owned  *loopConn // closed if f does not return; nil if there is none
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

// start runs f as a strand, in the next turn at the latest.
func (s *scheduler) start(owned *loopConn, f func()) {
	var t *strand
	if n := len(s.parked); n > 0 {
		t, s.parked[n-1], s.parked = s.parked[n-1], nil, s.parked[:n-1]
	} else {
		t = &strand{s: s}
		t.resume, t.stop = iter.Pull(t.body)
	}
	t.f, t.owned = f, owned
	s.live++
	s.ready = append(s.ready, t)
}

func (t *strand) body(yield func(struct{}) bool) {
	t.yield = yield
	for t.run(); len(t.s.parked) < maxParked; t.run() {
		t.s.parked = append(t.s.parked, t)
		if !yield(struct{}{}) {
			return
		}
	}
}

func (t *strand) run() {
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

// runBatch resumes what is left of the batch. Where it stands is kept in the scheduler: a strand
// that calls runtime.Goexit ends the caller, and the next one must be able to go on.
func (s *scheduler) runBatch() {
	for s.done < len(s.batch) {
		s.cur, s.budget = s.batch[s.done], turnBudget
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

// park lets the loop go on with others until somebody wakes the current strand, which has left
// its name in *at.
func (s *scheduler) park(at **strand) {
	if *at != nil {
		panic("netloop: two strands wait for the same thing")
	}
	*at = s.cur
	s.cur.yield(struct{}{})
}

func (s *scheduler) wake(at **strand) {
	if *at != nil {
		s.ready = append(s.ready, *at)
		*at = nil
	}
}

// breathe lets others run if the current strand has done a lot without ever having to wait.
func (s *scheduler) breathe() {
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

// NewGate implements Executor.
func (s *scheduler) NewGate() Gate { return &loopGate{s: s} }

type loopGate struct {
	s      *scheduler
	open   bool
	waiter *strand
}

func (g *loopGate) Open() {
	g.open = true
	g.s.wake(&g.waiter)
}

func (g *loopGate) Wait() {
	for !g.open {
		g.s.park(&g.waiter)
	}
}
