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
	c := &loopConn{l: l, fd: -1, peer: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
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
	ip, port := c.peer.Addr(), int(c.peer.Port())
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: port, Addr: ip.As16()})
	if ip.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
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
		_ = closeSocket(fd)
		return os.NewSyscallError("connect", begun)
	}
	c.fd = fd
	if err := c.l.add(c); err != nil {
		c.fd = -1
		_ = closeSocket(fd)
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
	if c.LocalAddr().String() == c.peer.String() {
		return os.NewSyscallError("connect", unix.ECONNREFUSED)
	}
	return nil
}

// dialName has a goroutine dial, and waits for it. The strand lives on, and so does the loop.
func (l *loop) dialName(addr string, timeout time.Duration) (Conn, error) {
	c := &loopConn{l: l, fd: -1}
	var err error
	done := l.NewGate()
	go c.dial(addr, timeout, func(failed error) {
		l.post(func() {
			err = failed
			done.Open()
		})
	})
	done.Wait()
	if err != nil {
		return nil, err
	}
	if l.closing {
		err = net.ErrClosed
	} else {
		err = l.add(c)
	}
	if err != nil {
		_ = closeSocket(c.fd)
		return nil, err
	}
	return c, nil
}

// dial gives c a descriptor and addresses, and then calls done. Until then it has c to itself.
func (c *loopConn) dial(addr string, timeout time.Duration, done func(error)) {
	done(c.dialNet(addr, timeout))
}

func (c *loopConn) dialNet(addr string, timeout time.Duration) error {
	dialer := net.Dialer{Timeout: max(timeout, 0)}
	nc, err := dialer.DialContext(c.l.e.ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	c.local, c.remote = nc.LocalAddr().(*net.TCPAddr), nc.RemoteAddr().(*net.TCPAddr)
	c.fd, err = duplicate(nc.(*net.TCPConn))
	return err
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
