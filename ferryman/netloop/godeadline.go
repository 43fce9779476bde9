package netloop

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// Package net looks at the clock before it looks at the socket. What follows looks at the socket once more when a
// deadline has passed: see expiry.

// expired reports whether err is a deadline that has passed.
func (c *goConn) expired(err error) bool {
	return err != nil && c.plain && errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *goConn) readableAfterDeadline() (found bool) {
	c.raw.Control(func(fd uintptr) { found = c.expiry.readable(int(fd)) })
	return found
}

// readExpired reads what came before the deadline; late is the error that there is if nothing did.
func (c *goConn) readExpired(b []byte, late error) (n int, err error) {
	err = late
	c.raw.Control(func(fd uintptr) {
		if len(b) == 0 || !c.expiry.readable(int(fd)) {
			return
		}
		var errno syscall.Errno
		n, errno = recv(int(fd), c.expiry.limit(b), 0)
		switch {
		case errno == syscall.EAGAIN:
			n = 0
		case errno != 0:
			n, err = 0, os.NewSyscallError("recvfrom", errno)
		case n == 0:
			err = io.EOF
		default:
			c.expiry.consumed(n)
			err = nil
		}
	})
	return n, err
}

// writeExpired goes on with a write as far as the peer has made room before the deadline.
func (c *goConn) writeExpired(b []byte, sent int, late error) (int, error) {
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
	c.expiry.set(passed(t))
	return c.Conn.SetReadDeadline(t)
}

func (c *goConn) SetWriteDeadline(t time.Time) error {
	c.writeWakesOnly.Store(passed(t))
	return c.Conn.SetWriteDeadline(t)
}

// passed reports whether t is a deadline that lies in the past and only wakes.
func passed(t time.Time) bool { return !t.IsZero() && !t.After(time.Now()) }
