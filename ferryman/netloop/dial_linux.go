package netloop

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dial implements Executor. A literal address is connected to on the loop. A name, or an address
// with a zone, goes the way of net.Dialer on a goroutine, and the loop adopts the outcome.
func (l *loop) Dial(addr string, timeout time.Duration) (Conn, error) {
	if l.closing {
		return nil, net.ErrClosed
	}
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || ap.Addr().Zone() != "" {
		return l.dialName(addr, timeout)
	}
	c := &loopConn{l: l, fd: -1}
	c.peer = inetAddr{ip: ap.Addr().As16(), port: ap.Port()}
	if ap.Addr().Unmap().Is4() {
		ip := ap.Addr().Unmap().As4()
		c.peer = inetAddr{v4: true, port: ap.Port()}
		copy(c.peer.ip[:], ip[:])
	}
	if err := c.connect(timeout); err != nil {
		if c.fd >= 0 {
			c.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: c.RemoteAddr(), Err: err}
	}
	return c, nil
}

// connect gives c a descriptor that is connected to c.peer. It leaves one if it fails later.
func (c *loopConn) connect(timeout time.Duration) error {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(c.peer.port), Addr: c.peer.ip})
	if c.peer.v4 {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(c.peer.port), Addr: [4]byte(c.peer.ip[:4])}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	keepAlive(fd)
	// Only then epoll: a socket that is not even connecting counts as hung up.
	begun := unix.Connect(fd, to)
	if begun != nil && begun != unix.EINPROGRESS {
		unix.Close(fd)
		return os.NewSyscallError("connect", begun)
	}
	c.fd = fd
	if err := c.l.add(c); err != nil {
		c.fd = -1
		unix.Close(fd)
		return err
	}
	if begun == nil {
		return c.notItself()
	}
	if timeout > 0 {
		c.SetWriteDeadline(time.Now().Add(timeout))
	}
	if err := c.awaitOutput(); err != nil {
		return err
	}
	c.SetWriteDeadline(time.Time{})
	if e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
		return os.NewSyscallError("connect", syscall.Errno(e))
	}
	return c.notItself()
}

// notItself refuses a connection of a socket with itself, which TCP makes if the system happens
// to choose the very port that is dialled, and nobody listens there.
func (c *loopConn) notItself() error {
	at := c.LocalAddr().(*net.TCPAddr)
	if to := c.RemoteAddr().(*net.TCPAddr); at.Port == to.Port && at.IP.Equal(to.IP) {
		return os.NewSyscallError("connect", unix.ECONNREFUSED)
	}
	return nil
}

// dialName has a goroutine dial, and waits for it. The strand lives on, and so does the loop.
func (l *loop) dialName(addr string, timeout time.Duration) (Conn, error) {
	var d dialled
	go l.dial(&d, addr, timeout)
	for d.conn == nil && d.err == nil {
		l.park(&d.waiter)
	}
	if d.err != nil {
		return nil, d.err
	}
	err := l.add(d.conn)
	if l.closing {
		err = net.ErrClosed
	}
	if err != nil {
		unix.Close(d.conn.fd)
		return nil, err
	}
	return d.conn, nil
}

// dialled is the outcome of a dial on a goroutine. The loop's goroutine sets it.
type dialled struct {
	waiter *strand
	conn   *loopConn // not yet in the loop's set
	err    error
}

func (l *loop) dial(d *dialled, addr string, timeout time.Duration) {
	dialer := net.Dialer{Timeout: max(timeout, 0)}
	c := &loopConn{l: l, fd: -1}
	nc, err := dialer.DialContext(l.e.ctx, "tcp", addr)
	if err == nil {
		c.local, c.remote = nc.LocalAddr().(*net.TCPAddr), nc.RemoteAddr().(*net.TCPAddr)
		c.fd, err = duplicate(nc.(*net.TCPConn))
		nc.Close()
	}
	l.post(func() {
		if d.err = err; err == nil {
			d.conn = c
		}
		l.wake(&d.waiter)
	})
}

// duplicate returns a descriptor of its own for the socket of c.
func duplicate(c *net.TCPConn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	closed := raw.Control(func(from uintptr) {
		fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0)
	})
	if closed != nil {
		return -1, closed
	}
	return fd, os.NewSyscallError("fcntl", err)
}
