package ferryman

import (
	"slices"
	"sync"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// waiters are the strands that wait for a change of what a lock guards: a condition variable for strands
// of one executor, each of which waits at a gate of its own. All methods need the lock.
type waiters struct {
	gates []netloop.Gate
}

// wait lets go of the lock until somebody wakes the strand.
func (w *waiters) wait(ex netloop.Executor, lock sync.Locker) { w.waitAt(ex.NewGate(), lock) }

// waitAt is wait at a gate that may be opened by others, too.
func (w *waiters) waitAt(g netloop.Gate, lock sync.Locker) {
	w.gates = append(w.gates, g)
	lock.Unlock()
	g.Wait()
	lock.Lock()
	if i := slices.Index(w.gates, g); i >= 0 {
		w.gates = slices.Delete(w.gates, i, i+1)
	}
}

// wakeOne wakes who has waited for longest.
func (w *waiters) wakeOne() {
	if len(w.gates) > 0 {
		g := w.gates[0]
		w.gates = slices.Delete(w.gates, 0, 1)
		g.Open()
	}
}

func (w *waiters) wakeAll() {
	for _, g := range w.gates {
		g.Open()
	}
	w.gates = w.gates[:0]
}
