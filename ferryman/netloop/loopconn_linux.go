package netloop

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// input is what a loop knows of a socket's receive queue.
type input uint8

const (
	noInput    input = iota // empty when last looked at; an event will tell
	maybeInput              // the last read filled its buffer, there may be more
	someInput               // bytes, end of stream or an error are there
)

// loopConn is a Conn of an event loop.
type loopConn struct {
	l      *loop
	fd     int // -1 from Close or Detach on
	slot   int32
	input  input
	gone   bool // the peer has closed its sending side, or there is an error
	broken bool // there is an error
	urgent bool // there was urgent data (RFC 6093), at which reads stop short
	client bool // accepted, not dialled

	reader, writer *coroutine // who waits to read or write
	expiry         expiry
	victim         Aborter
	abortOn        *bool       // gone or broken: what aborts the victim
	aborted        atomic.Bool // set from any goroutine, read by the coroutines

	peer          netip.AddrPort
	local, remote *net.TCPAddr // made when first asked for
}

// event takes note of what epoll reports. No coroutine runs meanwhile.
func (c *loopConn) event(is uint32) {
	if is&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.gone, c.broken = true, c.broken || is&unix.EPOLLERR != 0
		is |= unix.EPOLLIN
		c.guard(c.victim, c.abortOn)
	}
	if is&unix.EPOLLIN != 0 {
		c.input = someInput
		c.l.wake(&c.reader)
	}
	c.urgent = c.urgent || is&unix.EPOLLPRI != 0
	if is&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.l.wake(&c.writer)
	}
}

func (c *loopConn) Await() error {
	for {
		if err := c.awaitInput(); err != nil {
			return err
		}
		if c.input == someInput || !c.Quiet() {
			return nil
		}
	}
}

func (c *loopConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, c.usable(0)
	}
	for {
		if err := c.awaitInput(); err != nil {
			return 0, err
		}
		if n, err := c.receive(b); err != errNothing {
			return n, err
		}
	}
}

// receive reads what is there. It never waits: it is errNothing then.
func (c *loopConn) receive(b []byte) (int, error) {
	if c.input == noInput || c.expired() {
		return 0, errNothing
	}
	b = c.expiry.limit(b)
	n, errno := recv(c.fd, b, 0)
	c.expiry.consumed(n)
	switch {
	case errno == unix.EAGAIN:
		c.input = noInput
		return 0, errNothing
	case errno != 0:
		return 0, c.failed("read", "recvfrom", errno)
	case n == 0:
		return 0, io.EOF
	case c.gone: // an end of stream is behind the bytes, for which no event will come
	case n < len(b) && !c.urgent:
		c.input = noInput // drained: what comes from here on is a new event
	default:
		c.input = maybeInput
	}
	c.l.spend(n)
	return n, nil
}

func (c *loopConn) Write(b []byte) (int, error) {
	sent, err := 0, c.mayWrite()
	for err == nil && sent < len(b) {
		n, errno := send(c.fd, b[sent:])
		switch {
		case errno == unix.EAGAIN:
			err = c.awaitOutput()
		case errno != 0:
			err = c.failed("write", "sendto", errno)
		default:
			c.l.spend(n)
			if sent += n; sent < len(b) {
				err = c.mayWrite()
			}
		}
	}
	return sent, err
}

// offer sends what there is room for. It never waits, and leaves it to a Write to find out what is wrong.
func (c *loopConn) offer(b []byte) int {
	n, errno := send(c.fd, b)
	if errno != 0 {
		return 0
	}
	c.l.spend(n)
	return n
}

func (c *loopConn) failed(op, call string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
}

func (c *loopConn) Abort() {
	if c.aborted.CompareAndSwap(false, true) {
		c.l.post(c.wakeAll)
	}
}

func (c *loopConn) wakeAll() {
	c.l.wake(&c.reader)
	c.l.wake(&c.writer)
}

func (c *loopConn) CloseWrite() error {
	if err := c.usable(0); err != nil {
		return err
	}
	if err := unix.Shutdown(c.fd, unix.SHUT_WR); err != nil {
		return c.failed("close", "shutdown", err.(syscall.Errno))
	}
	return nil
}

func (c *loopConn) Close() error {
	if c.fd < 0 {
		return net.ErrClosed
	}
	return os.NewSyscallError("close", closeSocket(c.unhook()))
}

func (c *loopConn) Reset() error {
	if c.fd >= 0 {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	return c.Close()
}

// MoveTo needs no look at what has arrived meanwhile: the other loop's set reports it anew.
func (c *loopConn) MoveTo(to Executor, handle func(Executor, Conn)) {
	unix.EpollCtl(c.l.epfd, unix.EPOLL_CTL_DEL, c.fd, nil)
	l := to.(*loop)
	moved := &loopConn{l: l, client: c.client, urgent: c.urgent, peer: c.peer, local: c.local, remote: c.remote}
	moved.fd = c.unhook()
	fail := func(at *loop) {
		moved.l = at
		at.start(nil, func() { handle(at, moved) })
	}
	if !l.receive(moved, handle, func(err error) {
		if err != nil {
			fail(l)
		}
	}) {
		fail(c.l)
	}
}

func (c *loopConn) Detach() (net.Conn, error) {
	if err := c.usable(0); err != nil {
		return nil, err
	}
	unix.EpollCtl(c.l.epfd, unix.EPOLL_CTL_DEL, c.fd, nil)
	f := os.NewFile(uintptr(c.unhook()), "tcp")
	defer f.Close() // FileConn has its own descriptor
	return net.FileConn(f)
}

// unhook takes c off its loop and returns the descriptor, which is the caller's from here on.
func (c *loopConn) unhook() int {
	fd := c.fd
	c.fd, c.victim = -1, nil
	c.l.remove(c)
	c.slot = 0
	c.wakeAll()
	if c.client {
		c.l.accepted.Add(-1)
	}
	return fd
}
