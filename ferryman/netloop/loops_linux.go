package netloop

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// closePoll is how often a served listener is asked whether it has been closed: nobody tells.
const closePoll = 250 * time.Millisecond

type loopEngine struct {
	o      Options
	loops  []*loop
	ctx    context.Context // ends with Close, and with it every Dial by name
	cancel context.CancelFunc
	ended  sync.WaitGroup
	active activeLoops

	mu      sync.Mutex // guards what follows
	serving map[*acceptor]struct{}
	served  int // acceptors so far
}

// Loops returns an engine of epoll event loops. It exists on Linux only; elsewhere it is an
// error, and Goroutines is the engine to use.
func Loops(o Options) (Engine, error) {
	e := &loopEngine{o: o, serving: make(map[*acceptor]struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	n := o.Loops
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	for i := range n {
		l, err := newLoop(e, i+1)
		if err != nil {
			e.Close()
			return nil, fmt.Errorf("start an event loop: %w", err)
		}
		e.loops = append(e.loops, l)
		e.ended.Add(1)
		go l.run()
	}
	if e.setActive(1); n > 1 {
		e.ended.Add(1)
		go e.scale()
	}
	return e, nil
}

// Serve implements Engine for a *net.TCPListener; other listeners are an error.
func (e *loopEngine) Serve(nl net.Listener, handle func(Executor, Conn)) error {
	tl, ok := nl.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("serve %T on event loops: not a *net.TCPListener", nl)
	}
	raw, err := tl.SyscallConn()
	if err != nil {
		return err
	}
	e.mu.Lock()
	l := e.loops[e.served%len(e.loops)]
	e.served++
	a := newAcceptor(l, tl, raw, handle)
	e.serving[a] = struct{}{}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.serving, a)
		e.mu.Unlock()
	}()
	if !l.post(a.begin) || e.ctx.Err() != nil {
		nl.Close()
	}

	t := time.NewTicker(closePoll)
	defer t.Stop()
	for {
		select {
		case err := <-a.done:
			return err
		case <-t.C:
			if raw.Control(func(uintptr) {}) != nil {
				a.src.Abort()
			}
		case <-e.ctx.Done():
			return nil
		}
	}
}

// Take implements Engine for a *net.TCPConn; other connections are an error. It waits for a loop.
func (e *loopEngine) Take(nc net.Conn, handle func(Executor, Conn)) error {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("take %T onto an event loop: not a *net.TCPConn", nc)
	}
	fd, err := duplicate(tcp) // package net does not part with its own
	if err != nil {
		return err
	}
	l := e.leastLoaded(e.loops[0])
	c := &loopConn{l: l, fd: fd, client: true}
	c.local, _ = tcp.LocalAddr().(*net.TCPAddr)
	c.remote, _ = tcp.RemoteAddr().(*net.TCPAddr)
	taken := make(chan error, 1)
	if !l.receive(c, handle, func(err error) { taken <- err }) {
		return net.ErrClosed
	}
	if err := <-taken; err != nil {
		return err
	}
	nc.Close()
	return nil
}

// Executors implements Engine.
func (e *loopEngine) Executors() int { return len(e.loops) + 1 }

// Close implements Engine.
func (e *loopEngine) Close() error {
	e.mu.Lock()
	e.cancel()
	for a := range e.serving {
		a.listener.Close()
	}
	e.mu.Unlock()
	for _, l := range e.loops {
		l.post(l.close)
	}
	e.ended.Wait()
	return nil
}
