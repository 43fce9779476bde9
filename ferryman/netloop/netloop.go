package netloop

import (
	"net"
	"net/netip"
	"time"
)

const (
	// yieldBudget is how much a coroutine may do, in bytes moved, before it yields to others, and
	// callCost what a system call counts at least.
	yieldBudget = 128 << 10
	callCost    = 2 << 10
)

// Conn is a stream connection that belongs to one executor. Except for Abort, its methods are
// called by coroutines of that executor only. Deadlines follow net.Conn, but for what a read finds in the socket
// when its deadline has passed: that came in time, however late it is noticed, and is read. A deadline that lies in the
// past when it is set wakes a coroutine that is blocked in Await, Read or Write, with os.ErrDeadlineExceeded. One coroutine
// at a time may be in Await or Read, and one in Write. What a Write that was too late has left over is
// sent by another that goes on with the rest.
type Conn interface {
	net.Conn

	// Await returns nil as soon as a Read would not block (bytes, end of stream or an error are
	// there) and holds no buffer until then. It honours the read deadline and Abort.
	Await() error

	// Quiet asks the kernel, without blocking, whether there is nothing to be read: no byte, no
	// end of stream, no error. A pooled connection that is not quiet must not be used.
	Quiet() bool

	// SeemsQuiet is Quiet as far as the executor knows. It may miss what arrived a moment ago.
	// On an event loop it costs no system call unless there is something to be read; the
	// Goroutines engine, which knows nothing by itself, asks the kernel.
	SeemsQuiet() bool

	// Gone reports whether the peer has closed its sending side or reset the connection, as far
	// as the executor knows. Unread bytes may still be there.
	Gone() bool

	// Guard arranges that victim is aborted as soon as this connection's peer is Gone (at once
	// if it already is), within 100 ms at the latest. One victim at a time; nil ends it.
	Guard(victim Aborter)

	// GuardReset is Guard for a peer that may have closed its sending side and be there all the
	// same: only a reset, or another error of the connection, counts.
	GuardReset(victim Aborter)

	// Abort makes the pending and every later Await, Read and Write fail with net.ErrClosed. It
	// is safe from any goroutine and may be called more than once. The owner must still Close.
	Abort()

	// Reset is a Close that the peer sees as a reset (RST): what it got is not all there was.
	Reset() error

	// CloseWrite ends the sending side (FIN) and leaves the other open.
	CloseWrite() error

	// MoveTo has handle go on with the connection, as a coroutine of an executor that Rebalance has
	// returned. Bytes that were not read are read there. Where that one cannot have it, what handle gets
	// is closed, and the executor may be the old one. No coroutine may be waiting for it, and the Conn itself
	// must not be used afterwards, Close included.
	MoveTo(to Executor, handle func(Executor, Conn))

	// Detach takes the connection away from its executor and returns it as a plain one that any
	// goroutine may use. The Conn itself must not be used afterwards, Close included.
	Detach() (net.Conn, error)
}

// Aborter is what a guard ends. Its Abort must not block; it runs on the executor of the connection
// that is guarded or, with the Goroutines engine, on any goroutine.
type Aborter interface{ Abort() }

// Executor is where coroutines run. A coroutine waits for nothing but connections, dials and events: on
// an event loop a lock, a channel or a sleep would stop all others too. Except for Post, its
// methods are called by its own coroutines only.
type Executor interface {
	// Go starts another coroutine on the same executor. It does not wait for it.
	Go(f func())

	// Post is Go for any goroutine: f starts on the executor in its next iteration. Once the engine's Close
	// has no coroutine left to wait for, it is dropped.
	Post(f func())

	// Defer is Go for what is better done once for many: on an event loop f starts when the coroutines
	// that are ready by now have run. Where coroutines run side by side it is called at once.
	Defer(f func())

	// Spend tells of work that moved no bytes of a Conn, in the bytes that it is worth: on an event loop
	// the coroutine yields to others once it has used up its budget. The caller holds no lock.
	Spend(n int)

	// NewEvent returns a one-shot event that is not set, for one coroutine to wait for another.
	NewEvent() Event

	// Dial connects to a TCP address within timeout; 0 or less is no limit but the system's. stop ends
	// it early; nil: nobody does. Errors are those of net.Dialer.
	Dial(to netip.AddrPort, timeout time.Duration, stop *Stop) (Conn, error)

	// Rebalance returns the executor of the engine that an accepted connection of this one should
	// move to, or nil. It costs next to nothing.
	Rebalance() Executor

	// Now is the time (with its monotonic reading), at most a few milliseconds old.
	Now() time.Time

	// Index tells executors of one process apart, so that each can have a pool of its own: 0 is
	// the goroutines of all Goroutines engines, 1 to N are the loops of a Loops engine.
	Index() int
}

// Event is a one-shot event: it lets one coroutine wait for another of the same executor.
type Event interface {
	// Set lets the waiting coroutine, present or future, go on. Setting it twice is a no-op.
	Set()
	// Wait blocks the coroutine until the event is set.
	Wait()
}

// Engine owns executors and accepts connections for them.
type Engine interface {
	// Serve accepts from l until l is closed or Close is called, and starts handle as a coroutine
	// for each connection. It returns nil after a close and otherwise the error that ended it.
	// A shortage of descriptors or memory does not end it: accepting pauses and goes on.
	// handle owns the connection. A panic in handle closes the connection and is reported;
	// connections that it dialled are its own to close (defer).
	Serve(l net.Listener, handle func(Executor, Conn)) error

	// Take starts handle as a coroutine for a connection that exists already. If it returns nil, nc is
	// used up; otherwise nc is still the caller's, and usable. A coroutine of an event loop must not
	// call it.
	Take(nc net.Conn, handle func(Executor, Conn)) error

	// Executors is the highest Index that a coroutine of this engine can see, plus one.
	Executors() int

	// Close closes the listeners that are served, aborts all connections that still exist and
	// waits for every coroutine to end. Coroutines must end soon after their connections fail. What
	// is dialled, adopted or served afterwards fails at once. A coroutine must not call it.
	Close() error
}

// Options are the hooks of an engine. The zero value is usable: nil hooks are not called.
// Hooks may be called from any goroutine and must not block.
type Options struct {
	// Loops is the number of event loops; 0 or less: as many as runtime.GOMAXPROCS. The
	// Goroutines engine ignores it.
	Loops int

	// AcceptPaused is called once when accepting stops for want of descriptors or memory, and
	// AcceptResumed when it works again.
	AcceptPaused  func(error)
	AcceptResumed func()

	// Panicked is called with the value and the stack of a panic that ended a coroutine.
	Panicked func(value any, stack []byte)
}
