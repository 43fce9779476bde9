package netloop

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dial implements Executor.
func (l *loop) Dial(to netip.AddrPort, timeout time.Duration, stop *Stop) (Conn, error) {
	if l.closing {
		return nil, net.ErrClosed
	}
	c := &loopConn{l: l, fd: -1, peer: netip.AddrPortFrom(to.Addr().Unmap(), to.Port())}
	err := c.connect(timeout, stop)
	if err != nil {
		if c.fd >= 0 {
			c.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: c.RemoteAddr(), Err: err}
	}
	return c, nil
}

// connect gives c a descriptor that is connected to c.peer. It leaves one if it fails later.
func (c *loopConn) connect(timeout time.Duration, stop *Stop) error {
	family, to := sockaddr(c.peer)
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
		return c.refuseSelfConnect()
	}
	if timeout > 0 {
		c.SetWriteDeadline(time.Now().Add(timeout))
	}
	if err := c.awaitConnect(stop); err != nil {
		return err
	}
	c.SetWriteDeadline(time.Time{})
	if e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
		return os.NewSyscallError("connect", syscall.Errno(e))
	}
	return c.refuseSelfConnect()
}

func (c *loopConn) awaitConnect(stop *Stop) error {
	if stop == nil {
		return c.awaitOutput()
	}
	if !stop.Aim(c.Abort) {
		return net.ErrClosed
	}
	defer stop.Aim(nil)
	return c.awaitOutput()
}

// refuseSelfConnect refuses a connection of a socket with itself, which TCP makes if the system happens
// to choose the very port that is dialled, and nobody listens there.
func (c *loopConn) refuseSelfConnect() error {
	var sa unix.RawSockaddrAny
	if sockName(c.fd, &sa); fromRaw(&sa) == c.peer {
		return os.NewSyscallError("connect", unix.ECONNREFUSED)
	}
	return nil
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
