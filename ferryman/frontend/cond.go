package frontend

import (
	"slices"
	"sync"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// condQueue is a condition variable for the coroutines of one executor: those that wait for a change of what a lock
// guards, each at an event of its own. All methods need the lock.
type condQueue struct {
	events []netloop.Event
}

// wait lets go of the lock until somebody wakes the coroutine.
func (q *condQueue) wait(ex netloop.Executor, lock sync.Locker) { q.waitAt(ex.NewEvent(), lock) }

// waitAt is wait for an event that others may set, too.
func (q *condQueue) waitAt(g netloop.Event, lock sync.Locker) {
	q.events = append(q.events, g)
	lock.Unlock()
	g.Wait()
	lock.Lock()
	if i := slices.Index(q.events, g); i >= 0 {
		q.events = slices.Delete(q.events, i, i+1)
	}
}

// wakeOne wakes the coroutine that has waited longest.
func (q *condQueue) wakeOne() {
	if len(q.events) > 0 {
		g := q.events[0]
		q.events = slices.Delete(q.events, 0, 1)
		g.Set()
	}
}

func (q *condQueue) wakeAll() {
	for _, g := range q.events {
		g.Set()
	}
	q.events = q.events[:0]
}
