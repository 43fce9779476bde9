package upstream

import (
	"errors"
	"time"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

var (
	// ErrBusy is a wait that ran out while other requests' dials were under way: it tells nothing about the upstream.
	ErrBusy = errors.New("other requests' dials have taken all the time")
	// ErrOpen is a wait that ended because the circuit has opened meanwhile.
	ErrOpen = errors.New("the circuit has opened")
	// ErrShortage is a dial that failed for want of something of the process's own. It tells nothing either.
	ErrShortage = dial.ErrShortage
	// ErrAborted is a wait whose request has gone away.
	ErrAborted = errors.New("nobody waits for the connection any more")
)

// Waiter is a request that needs a connection and found none in the pool. It gets the first one that comes free or was
// dialled, in the order in which requests have come. Its owner keeps it for the next request.
type Waiter struct {
	up          *Upstream
	pool        *pool
	ex          netloop.Executor
	fresh, sure bool

	// What follows is guarded by the pool's lock.
	aborted    bool
	event      netloop.Event // nil: it does not wait
	conn       *Conn
	err        error
	prev, next *Waiter
}

// Reset makes w wait for a connection to u on ex. fresh: only one that no other request has used. sure: the kernel is
// asked whether it is fit for use, as Idle does.
func (w *Waiter) Reset(u *Upstream, ex netloop.Executor, fresh, sure bool) {
	*w = Waiter{up: u, pool: &u.pools[ex.Index()], ex: ex, fresh: fresh, sure: sure}
}

// Connection waits for a connection, within timeout; 0 or less is no limit but the system's. A dial that this begins
// goes on for others if w is aborted or served sooner.
func (w *Waiter) Connection(timeout time.Duration) (*Conn, error) {
	for {
		c, err := w.wait(timeout)
		if err != nil || !c.reused {
			return c, err
		}
		if !w.sure && !c.doubtful || c.Quiet() {
			c.doubtful = false
			return c, nil
		}
		c.noteStray(w.ex.Now())
		c.Discard() // its upstream has closed it meanwhile
	}
}

func (w *Waiter) wait(timeout time.Duration) (*Conn, error) {
	p, u, ex := w.pool, w.up, w.ex // w itself may be another request's when they are used
	event, dials, err := p.enter(w)
	switch {
	case err != nil:
		return nil, err
	case dials: // its outcome, or that of an earlier one, is there in time
		ex.Go(func() { p.dial(u, ex, timeout) })
	case timeout > 0:
		defer netloop.After(timeout, func() { ex.Post(func() { p.late(w, event) }) }).Stop()
	}
	event.Wait()
	return p.outcome(w)
}

// Abort implements netloop.Aborter: the request has gone away.
func (w *Waiter) Abort() { w.pool.abort(w) }

// queue is a list of waiters, the first of which has waited for longest.
type queue struct {
	first, last *Waiter
	n           int
}

func (q *queue) add(w *Waiter) {
	q.n++
	if w.prev = q.last; w.prev == nil {
		q.first = w
	} else {
		w.prev.next = w
	}
	q.last = w
}

func (q *queue) remove(w *Waiter) {
	q.n--
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}
