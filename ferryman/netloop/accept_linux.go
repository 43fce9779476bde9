package netloop

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptCost is what accepting a connection takes from a coroutine's budget: about twenty until it yields.
const acceptCost = 6 << 10

// acceptor is a coroutine that accepts the connections of one listener, and spreads them.
//
// One loop accepts for all. Were the listener in every loop's set, an EPOLLEXCLUSIVE one
// included, all loops would be woken for each connection (the kernel sees a set that is watched
// by another set, not a waiting thread), and the first in the list would get most of them.
type acceptor struct {
	l        *loop
	listener *net.TCPListener
	raw      syscall.RawConn
	handle   func(Executor, Conn)
	done     chan error
	shortage shortage

	// src makes the listener's descriptor something that a coroutine can wait for. It belongs to
	// listener all the time: whatever is done to it is done inside raw.Control.
	src    *loopConn
	accept func(uintptr) // sets what follows
	fd     int
	errno  syscall.Errno
	from   unix.RawSockaddrAny
}

func newAcceptor(l *loop, tl *net.TCPListener, raw syscall.RawConn, handle func(Executor, Conn)) *acceptor {
	a := &acceptor{
		l: l, listener: tl, raw: raw, handle: handle,
		done:     make(chan error, 1),
		shortage: shortage{o: &l.e.o},
		src:      &loopConn{l: l, fd: -1},
	}
	a.accept = func(fd uintptr) { a.fd, a.errno = accept(int(fd), &a.from) }
	return a
}

// begin starts the coroutine. It is called by the loop.
func (a *acceptor) begin() {
	if a.l.closing {
		a.done <- nil
		return
	}
	var err error
	closed := a.raw.Control(func(fd uintptr) {
		// Connections inherit these.
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		keepAlive(int(fd))
		boundUnsent(int(fd))
		a.src.fd = int(fd)
		err = a.l.add(a.src)
	})
	if closed != nil || err != nil {
		a.done <- err
		return
	}
	a.l.start(nil, a.run)
}

func (a *acceptor) run() {
	var err error
	defer func() {
		a.raw.Control(func(fd uintptr) { unix.EpollCtl(a.l.epfd, unix.EPOLL_CTL_DEL, int(fd), nil) })
		a.src.unhook()
		a.done <- err
	}()
	for {
		if a.src.awaitInput() != nil || a.raw.Control(a.accept) != nil {
			return
		}
		a.l.budget -= acceptCost
		switch {
		case a.errno == 0:
			a.shortage.over()
			a.place(a.fd, fromRaw(&a.from))
		case a.errno == unix.EAGAIN:
			a.src.input = noInput
		case isShortage(a.errno):
			a.shortage.begun(os.NewSyscallError("accept4", a.errno))
			a.pause()
		case isTransient(a.errno):
		default:
			err = &net.OpError{Op: "accept", Net: "tcp", Addr: a.listener.Addr(), Err: os.NewSyscallError("accept4", a.errno)}
			return
		}
	}
}

// pause waits for acceptPause, whoever connects meanwhile.
func (a *acceptor) pause() {
	a.l.tick()
	a.src.SetReadDeadline(a.l.now.Add(acceptPause))
	a.src.expiry.set(true) // who has come by then waits all the same
	for a.src.awaitInput() == nil {
		a.src.input = noInput
	}
	a.src.input = someInput
	a.src.SetReadDeadline(time.Time{})
}

// place gives a new connection to the active loop that has the fewest.
func (a *acceptor) place(fd int, from netip.AddrPort) {
	l := a.l.e.leastLoaded(a.l)
	c := &loopConn{l: l, fd: fd, client: true, peer: from}
	if l == a.l {
		l.accepted.Add(1)
		_ = l.adopt(c, a.handle)
		return
	}
	l.receive(c, a.handle, nil)
}

// receive takes over a connection that no loop has, and has done, which may be nil, called by the
// loop with how that went. A loop that has ended closes the connection, and it is false. It may be called by
// any goroutine.
func (l *loop) receive(c *loopConn, handle func(Executor, Conn), done func(error)) bool {
	if done == nil {
		done = func(error) {}
	}
	l.accepted.Add(1)
	if l.post(func() { done(l.adopt(c, handle)) }) {
		return true
	}
	l.accepted.Add(-1)
	_ = closeSocket(c.fd)
	c.fd = -1
	return false
}

// adopt starts handle with a connection that is not watched yet, or closes it.
func (l *loop) adopt(c *loopConn, handle func(Executor, Conn)) error {
	err := net.ErrClosed
	if !l.closing {
		err = l.add(c)
	}
	if err != nil {
		l.accepted.Add(-1)
		_ = closeSocket(c.fd)
		c.fd = -1
		return err
	}
	l.start(c, func() { handle(l, c) })
	return nil
}

// keepAlive turns on what net turns on by default: a probe after 15 s of silence, and each 15 s.
func keepAlive(fd int) {
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15)
}
