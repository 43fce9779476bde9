package ferryman

import (
	"sync"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// waiters are the strands that wait for a change of what a lock guards: a condition variable for strands
// of one executor, each of which waits at a gate of its own. All methods need the lock.
type waiters struct {
	gates []netloop.Gate
}

// wait lets go of the lock until somebody wakes the strand.
func (w *waiters) wait(ex netloop.Executor, lock sync.Locker) {
	g := ex.NewGate()
	w.gates = append(w.gates, g)
	lock.Unlock()
	g.Wait()
	lock.Lock()
}

// wakeOne wakes who has waited for longest.
func (w *waiters) wakeOne() {
	if len(w.gates) > 0 {
		g := w.gates[0]
		w.gates = append(w.gates[:0], w.gates[1:]...)
		g.Open()
	}
}

func (w *waiters) wakeAll() {
	for _, g := range w.gates {
		g.Open()
	}
	w.gates = w.gates[:0]
}
