package frontend

import (
	"errors"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// transferH2 is a connection's way to another executor that is to have it. Streams that are at work stay where
// they are, so new ones do not start until these are through. If that takes long, the connection stays, too.
// Its lock guards this.
type transferH2 struct {
	to netloop.Executor // nil: nowhere
}

// holdLimit is how long a stream may be held back.
const holdLimit = 20 * time.Millisecond

// errMoves ends the reader where the connection goes on elsewhere.
var errMoves = errors.New("the connection moves")

// post has f run on the connection's executor, with its lock. It may be called from any goroutine.
func (c *connH2) post(f func()) {
	c.mu.Lock()
	ex := c.ex
	c.mu.Unlock()
	ex.Post(func() {
		c.mu.Lock()
		if c.ex != ex {
			c.mu.Unlock()
			c.post(f)
			return
		}
		defer c.mu.Unlock()
		f()
	})
}

// rebalance asks, after a stream, whether the connection is to move. It needs the lock.
func (c *connH2) rebalance() {
	if c.to != nil || c.leaving || c.over || c.broken != nil {
		return
	}
	if to := c.ex.Rebalance(); to != nil {
		c.to = to
		time.AfterFunc(holdLimit, func() { c.post(c.cancelMove) })
	}
}

// cancelMove ends the wait for a move, and starts what was held back. It needs the lock.
func (c *connH2) cancelMove() {
	c.to = nil
	c.startSome()
}

// mayMove reports whether the connection is to move and nothing is under way. It needs the lock.
func (c *connH2) mayMove() bool {
	return c.to != nil && c.running == 0 && len(c.pending) == 0 && !c.writing && !c.due && !c.over && c.broken == nil
}

// checkForMove has the reader see that the connection may move. It needs the lock.
func (c *connH2) checkForMove() {
	if c.mayMove() && !c.begun { // or else the reader looks when it has the frame
		c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// moveOn is called by the reader, at its end.
func (c *connH2) moveOn() {
	c.srv.connections.abortBy(c.entry, func() {}) // while it moves, only the engine's end cuts it
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.to
	c.ex, c.to = to, nil                       // what is posted from here on is for there
	c.conn.(netloop.Conn).MoveTo(to, c.resume) // which waits for the lock
}

// resume serves the connection on the executor that it has moved to.
func (c *connH2) resume(ex netloop.Executor, conn netloop.Conn) {
	c.in.Follow(conn)
	c.srv.connections.abortBy(c.entry, conn.Abort)
	c.mu.Lock()
	c.ex, c.raw, c.conn, c.strict = ex, conn, conn, false
	c.conn.SetReadDeadline(ex.Now().Add(c.idleTimeout()))
	c.cancelMove()
	c.mu.Unlock()
	c.serve(c.read)
}
