package netloop

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// usable returns why c cannot be used under a deadline, if so.
func (c *loopConn) usable(deadline int64) error {
	if c.fd < 0 || c.aborted.Load() {
		return net.ErrClosed
	}
	if deadline != 0 && deadline <= c.l.at {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// mayRead tells why one must not even look for input, if so, once others have run.
func (c *loopConn) mayRead() error {
	c.l.yieldIfSpent()
	if c.expiry.left.Load() != wakeOnly {
		return c.usable(0)
	}
	return c.usable(c.l.slots[c.slot].rd)
}

// mayWrite tells why one cannot write, if so, and lets others run: after the deadline was looked
// at, for what they take of the time is not the peer's.
func (c *loopConn) mayWrite() error {
	if err := c.writable(); err != nil {
		return err
	}
	c.l.yieldIfSpent()
	return c.usable(0)
}

func (c *loopConn) writable() error { return c.usable(c.l.slots[c.slot].wd) }

var _ socket = (*loopConn)(nil) // or TLS would go over it as over any net.Conn

// awaitInput waits until there may be something to read.
func (c *loopConn) awaitInput() error {
	c.l.yieldIfSpent()
	for {
		if err := c.usable(0); err != nil {
			return err
		}
		if c.expired() {
			return os.ErrDeadlineExceeded
		}
		if c.input != noInput {
			return nil
		}
		c.l.park(&c.reader)
	}
}

// expired reports whether the read deadline has passed, and there is nothing that came before.
func (c *loopConn) expired() bool {
	if c.usable(c.l.slots[c.slot].rd) == nil {
		return false
	}
	if c.expiry.readable(c.fd) {
		c.input = someInput
		return false
	}
	return true
}

// awaitOutput waits for the end of a connect or of a lack of space, which count as input does.
func (c *loopConn) awaitOutput() error {
	err := c.usable(c.l.slots[c.slot].wd)
	if err != nil {
		return err
	}
	c.l.park(&c.writer)
	if err = c.usable(c.l.slots[c.slot].wd); err == os.ErrDeadlineExceeded && polled(c.fd, unix.POLLOUT) != 0 {
		return nil
	}
	return err
}
