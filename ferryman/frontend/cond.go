package frontend

import (
	"slices"
	"sync"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// condQueue is a condition variable for the coroutines of one executor: those that wait for a change of what a lock
// guards, each at an event of its own. All methods need the lock.
type condQueue struct {
	gates []netloop.Gate
}

// wait lets go of the lock until somebody wakes the coroutine.
func (q *condQueue) wait(ex netloop.Executor, lock sync.Locker) { q.waitAt(ex.NewGate(), lock) }

// waitAt is wait at a gate that may be opened by others, too.
func (q *condQueue) waitAt(g netloop.Gate, lock sync.Locker) {
	q.gates = append(q.gates, g)
	lock.Unlock()
	g.Wait()
	lock.Lock()
	if i := slices.Index(q.gates, g); i >= 0 {
		q.gates = slices.Delete(q.gates, i, i+1)
	}
}

// wakeOne wakes who has waited for longest.
func (q *condQueue) wakeOne() {
	if len(q.gates) > 0 {
		g := q.gates[0]
		q.gates = slices.Delete(q.gates, 0, 1)
		g.Open()
	}
}

func (q *condQueue) wakeAll() {
	for _, g := range q.gates {
		g.Open()
	}
	q.gates = q.gates[:0]
}
