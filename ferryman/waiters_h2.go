package ferryman

import (
	"slices"
	"sync"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// waiters are the coroutines that wait for a change of what a lock guards: a condition variable for coroutines
// of one executor, each of which waits for an event of its own. All methods need the lock.
type waiters struct {
	events []netloop.Event
}

// wait lets go of the lock until somebody wakes the coroutine.
func (w *waiters) wait(ex netloop.Executor, lock sync.Locker) { w.waitAt(ex.NewEvent(), lock) }

// waitAt is wait with an event that others may set, too.
func (w *waiters) waitAt(g netloop.Event, lock sync.Locker) {
	w.events = append(w.events, g)
	lock.Unlock()
	g.Wait()
	lock.Lock()
	if i := slices.Index(w.events, g); i >= 0 {
		w.events = slices.Delete(w.events, i, i+1)
	}
}

// wakeOne wakes who has waited for longest.
func (w *waiters) wakeOne() {
	if len(w.events) > 0 {
		g := w.events[0]
		w.events = slices.Delete(w.events, 0, 1)
		g.Set()
	}
}

func (w *waiters) wakeAll() {
	for _, g := range w.events {
		g.Set()
	}
	w.events = w.events[:0]
}
