package netloop

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// crew is which loops are at work: the first ones. A change of their number shows in where new
// connections go, and in what Relief says to those that there are.
type crew struct {
	working atomic.Int32
	pinned  atomic.Bool
}

// Work keeps n loops at work whatever the load, as far as there are as many; 0 leaves their number
// to the load, as it is from the start. It may be called at any time.
func (e *loopEngine) Work(n int) {
	e.crew.pinned.Store(n > 0)
	if n > 0 {
		e.work(min(n, len(e.loops)))
	}
}

// work has n loops at work, and the others give away what they have.
func (e *loopEngine) work(n int) {
	e.crew.working.Store(int32(n))
	var all int32
	for _, l := range e.loops {
		all += l.accepted.Load()
	}
	for i, l := range e.loops {
		share := int32(0)
		if i < n {
			share = all / int32(n)
		}
		l.surplus.Store(l.accepted.Load() - share)
	}
}

func (e *loopEngine) allWork() bool { return int(e.crew.working.Load()) == len(e.loops) }

// scale has as many loops at work as the load needs, until the engine is closed.
func (e *loopEngine) scale() {
	defer e.ended.Done()
	t := time.NewTimer(scaleTick)
	defer t.Stop()
	s := newScaler(len(e.loops))
	waited := make([]time.Duration, len(e.loops))
	looked, used := time.Now(), processorTime()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-t.C:
		}
		now, total := time.Now(), processorTime()
		passed := now.Sub(looked)
		busiest := 0.0
		for i, l := range e.loops {
			w := l.rest.until(now)
			if i < s.working {
				busiest = max(busiest, 1-float64(w-waited[i])/float64(passed))
			}
			waited[i] = w
		}
		n := s.look(busiest, float64(total-used)/float64(passed))
		looked, used = now, total
		if n != int(e.crew.working.Load()) && !e.crew.pinned.Load() {
			e.work(n)
		}
		t.Reset(time.Duration(s.next) * scaleTick)
	}
}

// processorTime is how long processors have worked for this process.
func processorTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) // cannot fail
	return time.Duration(t.Nano())
}

// leastLoaded returns the loop at work with the fewest accepted connections, which is mine unless
// another has fewer.
func (e *loopEngine) leastLoaded(mine *loop) *loop {
	working := e.loops[:e.crew.working.Load()]
	best := working[0]
	if mine.index <= len(working) {
		best = mine
	}
	fewest := best.accepted.Load()
	for _, l := range working {
		if n := l.accepted.Load(); n < fewest {
			best, fewest = l, n
		}
	}
	return best
}

// Relief implements Executor.
func (l *loop) Relief() Executor {
	if l.surplus.Load() <= 0 {
		return nil
	}
	l.surplus.Add(-1)
	if to := l.e.leastLoaded(l); to != l {
		return to
	}
	return nil
}

// rest is how long a loop has waited for events. The loop writes it, anybody may read it.
type rest struct {
	base  time.Time
	total int64        // ns, without a wait that still lasts
	shown atomic.Int64 // total twice; or, and odd, total less the moment at which a wait began
}

func (r *rest) begin(at int64) { r.shown.Store((r.total-at)<<1 | 1) }

func (r *rest) end(begun, at int64) {
	r.total += at - begun
	r.shown.Store(r.total << 1)
}

// until includes a wait as far as it has lasted.
func (r *rest) until(now time.Time) time.Duration {
	shown := r.shown.Load()
	if shown&1 == 1 {
		return time.Duration(shown>>1) + now.Sub(r.base)
	}
	return time.Duration(shown >> 1)
}
