package upstream

import (
	"errors"
	"time"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/pool"
)

var (
	// ErrBusy is a wait that ran out while other requests' dials were under way: it says nothing about the upstream.
	ErrBusy = pool.ErrBusy
	// ErrOpen is a wait that ended because the circuit has opened meanwhile.
	ErrOpen = errors.New("the circuit has opened")
	// ErrShortage is a dial that failed for want of something of the process's own. It says nothing either.
	ErrShortage = dial.ErrShortage
	// ErrAborted is a wait whose request has gone away.
	ErrAborted = pool.ErrAborted
)

// Waiter is a request that needs a connection and found none in the pool. Its owner keeps it for the next request.
type Waiter struct {
	pool.Waiter[*Conn] // whose Abort ends the wait
	ex                 netloop.Executor
	sure               bool
}

// Reset makes w wait for a connection to u on ex. fresh: only one that no other request has used. sure: the kernel is
// asked whether it is fit for use, as Idle does.
func (w *Waiter) Reset(u *Upstream, ex netloop.Executor, fresh, sure bool) {
	w.Waiter.Reset(u.pool, ex, fresh)
	w.ex, w.sure = ex, sure
}

// Connection waits for a connection, within timeout; 0 or less is no limit but the system's. A dial that this begins
// goes on for others if w is aborted or served sooner.
func (w *Waiter) Connection(timeout time.Duration) (*Conn, error) {
	for {
		c, err := w.Wait(timeout)
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
