package netloop

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// acceptPause is how long accepting pauses when descriptors or memory have run out.
const acceptPause = 100 * time.Millisecond

// GoroutineEngine runs every coroutine as a goroutine and every connection on the runtime's poller.
// It is its own and only Executor: all its methods may be called from any goroutine, so code
// that brings goroutines of its own (HTTP/2) can use it too.
type GoroutineEngine struct {
	o      Options
	guards sweeper
	ctx    context.Context // ends with Close, and with it every Dial
	cancel context.CancelFunc

	mu         sync.Mutex // guards what follows
	conns      map[*goConn]struct{}
	listeners  map[net.Listener]struct{}
	coroutines int
	idle       sync.Cond // coroutines is 0
}

// Goroutines returns an engine that works on all systems.
func Goroutines(o Options) *GoroutineEngine {
	g := &GoroutineEngine{
		o:         o,
		conns:     make(map[*goConn]struct{}),
		listeners: make(map[net.Listener]struct{}),
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.idle.L = &g.mu
	g.guards.stop = g.ctx.Done()
	return g
}

// Serve implements Engine. It serves any kind of listener, and Close closes the listener.
func (g *GoroutineEngine) Serve(l net.Listener, handle func(Executor, Conn)) error {
	g.mu.Lock()
	g.listeners[l] = struct{}{}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.listeners, l)
		g.mu.Unlock()
	}()
	if g.ctx.Err() != nil {
		l.Close()
		return nil
	}

	if sc, ok := l.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { boundUnsent(int(fd)) }) // connections inherit it
		}
	}
	s := shortage{o: &g.o}
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.over()
			c := g.adopt(nc)
			g.start(c, func() { handle(g, c) })
		case g.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case isShortage(err):
			s.begun(err)
			select {
			case <-time.After(acceptPause):
			case <-g.ctx.Done():
			}
		case isTransient(err): // that one connection is lost, the listener is well
		default:
			return err
		}
	}
}

// Adopt makes a Conn of a plain connection; closing the Conn closes it. One that is no socket of
// package net will do: Await then reads one byte ahead, and where there is no socket at all nobody
// tells whether the peer is gone. Abort closes nc and must not block on that, so adopt what is
// below TLS.
func (g *GoroutineEngine) Adopt(nc net.Conn) Conn { return g.adopt(nc) }

// Take implements Engine for any kind of connection.
func (g *GoroutineEngine) Take(nc net.Conn, handle func(Executor, Conn)) error {
	c := g.adopt(nc)
	g.start(c, func() { handle(g, c) })
	return nil
}

// Executors implements Engine.
func (g *GoroutineEngine) Executors() int { return 1 }

// Index implements Executor.
func (g *GoroutineEngine) Index() int { return 0 }

// Now implements Executor.
func (g *GoroutineEngine) Now() time.Time { return time.Now() }

// Go implements Executor.
func (g *GoroutineEngine) Go(f func()) { g.start(nil, f) }

// Defer implements Executor.
func (g *GoroutineEngine) Defer(f func()) { f() }

// Spend implements Executor: the runtime's scheduler preempts goroutines by itself.
func (g *GoroutineEngine) Spend(int) {}

// Post implements Executor. While there is a coroutine, somebody may wait for what is posted.
func (g *GoroutineEngine) Post(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() == nil || g.coroutines > 0 { // one of them may wait for f
		g.startLocked(nil, f)
	}
}

// Rebalance implements Executor: the runtime spreads goroutines by itself.
func (g *GoroutineEngine) Rebalance() Executor { return nil }

// NewEvent implements Executor.
func (g *GoroutineEngine) NewEvent() Event { return &goEvent{set: make(chan struct{})} }

// Dial implements Executor.
func (g *GoroutineEngine) Dial(to netip.AddrPort, timeout time.Duration, stop *Stop) (Conn, error) {
	ctx, cancel := context.WithCancelCause(g.ctx)
	defer cancel(nil)
	if stop != nil {
		if !stop.Aim(func() { cancel(nil) }) {
			return nil, net.ErrClosed
		}
		defer stop.Aim(nil)
	}
	if timeout > 0 { // not the dialer's own, which does not look at the socket first
		defer After(timeout, func() { cancel(os.ErrDeadlineExceeded) }).Stop()
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	switch {
	case err == nil:
		return g.adopt(nc), nil
	case context.Cause(ctx) == os.ErrDeadlineExceeded:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: os.ErrDeadlineExceeded}
	}
	return nil, err
}

// Close implements Engine.
func (g *GoroutineEngine) Close() error {
	g.mu.Lock()
	g.cancel() // under the lock: what is adopted from here on is aborted by adopt
	for l := range g.listeners {
		l.Close()
	}
	for c := range g.conns {
		c.Abort()
	}
	for g.coroutines > 0 {
		g.idle.Wait()
	}
	g.mu.Unlock()
	g.guards.running.Wait()
	return nil
}

func (g *GoroutineEngine) adopt(nc net.Conn) *goConn {
	c := newGoConn(g, nc)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[c] = struct{}{}
	if g.ctx.Err() != nil {
		c.Abort()
	}
	return c
}

func (g *GoroutineEngine) forget(c *goConn) {
	g.mu.Lock()
	delete(g.conns, c)
	g.mu.Unlock()
}

// start runs f as a coroutine. If f does not return normally, c is closed (unless it is nil).
func (g *GoroutineEngine) start(c *goConn, f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.startLocked(c, f)
}

func (g *GoroutineEngine) startLocked(c *goConn, f func()) {
	g.coroutines++
	go g.coroutine(c, f)
}

func (g *GoroutineEngine) coroutine(c *goConn, f func()) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			g.o.panicked(v)
		}
		if !returned && c != nil {
			c.Close()
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.coroutines--; g.coroutines == 0 {
			g.idle.Broadcast()
		}
	}()
	f()
	returned = true
}

type goEvent struct {
	once sync.Once
	set  chan struct{}
}

func (e *goEvent) Set()  { e.once.Do(func() { close(e.set) }) }
func (e *goEvent) Wait() { <-e.set }

// panicked reports a panic that the caller has just recovered.
func (o *Options) panicked(v any) {
	if o.Panicked != nil {
		o.Panicked(v, debug.Stack())
	}
}
