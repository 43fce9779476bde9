package pool

import (
	"errors"
	"io"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

var (
	// ErrBusy is a wait that ran out while other waiters' dials were under way: it says nothing about the other end.
	ErrBusy = errors.New("other requests' dials have taken all the time")
	// ErrAborted is a wait that was aborted.
	ErrAborted = errors.New("nobody waits for the connection any more")
)

// Waiter waits for a connection. It gets the first one that comes free or was dialled, in the order in which waiters
// have come. Its owner keeps it for the next wait.
type Waiter[C io.Closer] struct {
	pool  *Pool[C]
	ex    netloop.Executor
	fresh bool

	// What follows is guarded by the stack's lock.
	aborted    bool
	event      netloop.Event // nil: it does not wait
	conn       C
	err        error
	prev, next *Waiter[C]
}

// Reset makes w wait on ex. fresh: only for a connection that was dialled.
func (w *Waiter[C]) Reset(p *Pool[C], ex netloop.Executor, fresh bool) {
	*w = Waiter[C]{pool: p, ex: ex, fresh: fresh}
}

// Wait waits for a connection, within timeout; 0 or less is no limit but the system's. A dial that this begins goes on
// for others if w is aborted or served sooner.
func (w *Waiter[C]) Wait(timeout time.Duration) (c C, err error) {
	p, s, ex := w.pool, &w.pool.stacks[w.ex.Index()], w.ex // copies: w may be reused before the closures run
	event, dials, err := s.enter(w)
	switch {
	case err != nil:
		return c, err
	case dials: // no timer: this dial or an earlier one ends within timeout
		ex.Go(func() { p.dialFor(s, ex, timeout) })
	case timeout > 0:
		defer netloop.After(timeout, func() { ex.Post(func() { s.late(w, event) }) }).Stop()
	}
	event.Wait()
	c, unwanted, err := s.outcome(w)
	if err == nil && unwanted {
		p.spare(ex, c)
		var none C
		return none, ErrAborted
	}
	return c, err
}

// Abort implements netloop.Aborter: the wait is over.
func (w *Waiter[C]) Abort() { w.pool.stacks[w.ex.Index()].abort(w) }
