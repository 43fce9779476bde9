package netloop

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// goConn is a Conn of the Goroutines engine.
type goConn struct {
	net.Conn
	g     *GoroutineEngine
	raw   syscall.RawConn // the socket; nil if there is none
	plain bool            // what can be read is what the socket has: nothing is buffered above

	// Functions that ask raw, made once so that asking does not allocate.
	await            func(fd uintptr) bool // returns true when there is something to read
	askRead          func(fd uintptr)      // sets isQuiet
	askPeer          func(fd uintptr)      // sets isGone and isBroken
	isQuiet          bool
	asking           sync.Mutex // for what follows: the sweeper asks as well as the owner
	isGone, isBroken bool

	// aborted is set once, before Conn is closed: who sees Conn fail sees it too.
	aborted atomic.Bool

	ahead    [1]byte // a byte that Await has read because it could not wait for the socket
	hasAhead bool

	sinceYield     int // bytes read since the last yield
	expiry         expiry
	writeWakesOnly atomic.Bool // the write deadline lies in the past and only wakes

	guard guard
}

func newGoConn(g *GoroutineEngine, nc net.Conn) *goConn {
	c := &goConn{Conn: nc, g: g}
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		c.plain = canPeek
	}
	sc, ok := nc.(syscall.Conn)
	if !ok || !canPeek {
		return c
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return c
	}
	c.raw = raw
	c.await = func(fd uintptr) bool { return !quiet(int(fd)) }
	c.askRead = func(fd uintptr) { c.isQuiet = quiet(int(fd)) }
	c.askPeer = func(fd uintptr) { c.isGone, c.isBroken = gone(int(fd)) }
	return c
}

func (c *goConn) Read(b []byte) (int, error) {
	if c.hasAhead && len(b) > 0 {
		b[0], c.hasAhead = c.ahead[0], false
		return 1, nil
	}
	n, err := c.Conn.Read(b)
	if c.expired(err) {
		n, err = c.readExpired(b, err)
	}
	c.yieldIfSpent(n)
	return n, c.cause(err)
}

// yieldIfSpent lets others run now and then if there is always something to read: the scheduler's own time slices
// are a hundred times as long.
func (c *goConn) yieldIfSpent(n int) {
	if c.sinceYield += n + callCost; c.sinceYield > yieldBudget {
		c.sinceYield = 0
		runtime.Gosched()
	}
}

func (c *goConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.expired(err) && !c.writeWakesOnly.Load() {
		n, err = c.writeExpired(b, n, err)
	}
	return n, c.cause(err)
}

func (c *goConn) Await() error {
	if c.plain {
		err := c.raw.Read(c.await)
		if c.expired(err) && c.readableAfterDeadline() {
			return nil
		}
		return c.cause(err)
	}
	if c.hasAhead {
		return nil
	}
	n, err := c.Conn.Read(c.ahead[:])
	c.hasAhead = n == 1
	if !c.hasAhead && (c.aborted.Load() || errors.Is(err, os.ErrDeadlineExceeded)) {
		return c.cause(err)
	}
	return nil // an end of stream or an error is for Read to tell: it will meet it again
}

// cause makes an error that Abort has brought about look the same everywhere.
func (c *goConn) cause(err error) error {
	if err != nil && c.aborted.Load() {
		return net.ErrClosed
	}
	return err
}

func (c *goConn) Quiet() bool {
	if c.hasAhead || c.aborted.Load() {
		return false
	}
	if c.raw == nil {
		return true
	}
	return c.raw.Control(c.askRead) == nil && c.isQuiet
}

// SeemsQuiet asks the kernel all the same: here nobody else would have noticed anything.
func (c *goConn) SeemsQuiet() bool { return c.Quiet() }

func (c *goConn) Gone() bool {
	gone, _ := c.peer()
	return gone
}

// peer tells whether the peer is gone, and whether that is so because of an error.
func (c *goConn) peer() (gone, broken bool) {
	if c.raw == nil {
		return false, false
	}
	c.asking.Lock()
	defer c.asking.Unlock()
	known := c.raw.Control(c.askPeer) == nil
	return known && c.isGone, known && c.isBroken
}

func (c *goConn) Guard(victim Aborter)      { c.guard.set(c, victim, false) }
func (c *goConn) GuardReset(victim Aborter) { c.guard.set(c, victim, true) }

func (c *goConn) Abort() {
	c.aborted.Store(true)
	c.Conn.Close()
}

func (c *goConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return c.cause(w.CloseWrite())
	}
	return &net.OpError{Op: "close", Net: "tcp", Err: syscall.ENOTSUP}
}

func (c *goConn) Close() error {
	c.guard.end()
	c.g.forget(c)
	err := c.Conn.Close()
	if c.aborted.Load() {
		return nil
	}
	return err
}

func (c *goConn) Reset() error {
	if tcp, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(0)
	}
	return c.Close()
}

// MoveTo starts another coroutine: there is no other executor.
func (c *goConn) MoveTo(_ Executor, handle func(Executor, Conn)) {
	c.g.start(c, func() { handle(c.g, c) })
}

func (c *goConn) Detach() (net.Conn, error) {
	if c.aborted.Load() {
		return nil, net.ErrClosed
	}
	c.guard.end()
	c.g.forget(c)
	if c.hasAhead {
		return &aheadConn{Conn: c.Conn, ahead: c.ahead[:]}, nil
	}
	return c.Conn, nil
}

// aheadConn gives back what was read before a connection was detached.
type aheadConn struct {
	net.Conn
	ahead []byte
}

func (c *aheadConn) Read(b []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}
