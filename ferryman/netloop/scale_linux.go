package netloop

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// activeLoops is which loops are active: the first ones. A change of their number shows in where new
// connections go, and in what Rebalance says to those that there are.
type activeLoops struct {
	count  atomic.Int32
	pinned atomic.Bool
}

// Work keeps n loops active whatever the load, as far as there are as many; 0 leaves their number
// to the load, as it is from the start. It may be called at any time.
func (e *loopEngine) Work(n int) {
	e.active.pinned.Store(n > 0)
	if n > 0 {
		e.setActive(min(n, len(e.loops)))
	}
}

// setActive has n loops active, and the others give away what they have.
func (e *loopEngine) setActive(n int) {
	e.active.count.Store(int32(n))
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

func (e *loopEngine) allActive() bool { return int(e.active.count.Load()) == len(e.loops) }

// scale has as many loops active as the load needs, until the engine is closed.
func (e *loopEngine) scale() {
	defer e.ended.Done()
	t := time.NewTimer(scaleTick)
	defer t.Stop()
	s := newScaler(len(e.loops))
	waited := make([]time.Duration, len(e.loops))
	sampled, used := time.Now(), processorTime()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-t.C:
		}
		now, total := time.Now(), processorTime()
		passed := now.Sub(sampled)
		busiest := 0.0
		for i, l := range e.loops {
			w := l.idle.until(now)
			if i < s.active {
				busiest = max(busiest, 1-float64(w-waited[i])/float64(passed))
			}
			waited[i] = w
		}
		n := s.sample(busiest, float64(total-used)/float64(passed))
		sampled, used = now, total
		if n != int(e.active.count.Load()) && !e.active.pinned.Load() {
			e.setActive(n)
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

// leastLoaded returns the active loop with the fewest accepted connections, which is mine unless
// another has fewer.
func (e *loopEngine) leastLoaded(mine *loop) *loop {
	active := e.loops[:e.active.count.Load()]
	best := active[0]
	if mine.index <= len(active) {
		best = mine
	}
	fewest := best.accepted.Load()
	for _, l := range active {
		if n := l.accepted.Load(); n < fewest {
			best, fewest = l, n
		}
	}
	return best
}

// Rebalance implements Executor.
func (l *loop) Rebalance() Executor {
	if l.surplus.Load() <= 0 {
		return nil
	}
	l.surplus.Add(-1)
	if to := l.e.leastLoaded(l); to != l {
		return to
	}
	return nil
}

// idleTime is how long a loop has waited for events. The loop writes it, anybody may read it.
type idleTime struct {
	base  time.Time
	total int64        // ns, without a wait that still lasts
	shown atomic.Int64 // total twice; or, and odd, total less the moment at which a wait began
}

func (t *idleTime) begin(at int64) { t.shown.Store((t.total-at)<<1 | 1) }

func (t *idleTime) end(begun, at int64) {
	t.total += at - begun
	t.shown.Store(t.total << 1)
}

// until includes a wait as far as it has lasted.
func (t *idleTime) until(now time.Time) time.Duration {
	shown := t.shown.Load()
	if shown&1 == 1 {
		return time.Duration(shown>>1) + now.Sub(t.base)
	}
	return time.Duration(shown >> 1)
}
