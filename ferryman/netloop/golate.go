package netloop

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// Package net looks at the clock before it looks at the socket. What follows looks at the socket once more when a
// deadline has passed: see lastLook.

// late reports whether err is a deadline that has passed.
func (c *goConn) late(err error) bool {
	return err != nil && c.plain && errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *goConn) findsLate() (found bool) {
	c.raw.Control(func(fd uintptr) { found = c.look.finds(int(fd)) })
	return found
}

// readLate reads what came before the deadline; late is the error that there is if nothing did.
func (c *goConn) readLate(b []byte, late error) (n int, err error) {
	err = late
	c.raw.Control(func(fd uintptr) {
		if len(b) == 0 || !c.look.finds(int(fd)) {
			return
		}
		var errno syscall.Errno
		n, errno = recv(int(fd), c.look.bound(b), 0)
		switch {
		case errno == syscall.EAGAIN:
			n = 0
		case errno != 0:
			n, err = 0, os.NewSyscallError("recvfrom", errno)
		case n == 0:
			err = io.EOF
		default:
			c.look.took(n)
			err = nil
		}
	})
	return n, err
}

// writeLate goes on with a write as far as the peer has made room before the deadline.
func (c *goConn) writeLate(b []byte, sent int, late error) (int, error) {
	c.raw.Control(func(fd uintptr) {
		if n, errno := send(int(fd), b[sent:]); errno == 0 {
			sent += n
		}
	})
	if sent == len(b) {
		return sent, nil
	}
	return sent, late
}

func (c *goConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *goConn) SetReadDeadline(t time.Time) error {
	c.look.set(passed(t))
	return c.Conn.SetReadDeadline(t)
}

func (c *goConn) SetWriteDeadline(t time.Time) error {
	c.writeWakes.Store(passed(t))
	return c.Conn.SetWriteDeadline(t)
}

// passed reports whether t is a deadline that only wakes.
func passed(t time.Time) bool { return !t.IsZero() && !t.After(time.Now()) }
