package engine

import (
	"syscall"

	"github.com/Bunty9/ferryman/loadtest/result"
)

// read takes what has come. A read that leaves room in the buffer has emptied the socket, so no
// further one is needed, unless the peer has closed: then the last one says so.
func (l *loop) read(c *conn, closed bool) {
	for {
		n, stamp, errno := l.receiver.receive(c.fd, l.buffer)
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			l.lost(c, result.Reset)
			return
		case n == 0:
			l.ended(c)
			return
		}
		if !l.scan(c, l.buffer[:n], stamp) || (n < len(l.buffer) && !closed) {
			return
		}
	}
}

// scan feeds the answer and reports whether the socket may hold more for this loop to read.
func (l *loop) scan(c *conn, p []byte, stamp int64) bool {
	if c.state == connIdle {
		l.r.unsolicited.Add(1)
		l.lost(c, result.Reset)
		return false
	}
	c.received += int64(len(p))
	n, done, err := c.scanner.Feed(p)
	if !done && err == nil {
		return true
	}
	now := l.arrival(c, stamp)
	switch {
	case err != nil, done && n < len(p):
		l.finish(c, result.Malformed, now)
	case done && c.state == connSending:
		// An answer before the whole request was sent: the rest will never be taken.
		c.scanner.Close = true
		l.finish(c, c.lane.target.classify(&c.scanner), now)
	default:
		l.finish(c, c.lane.target.classify(&c.scanner), now)
	}
	return c.fd >= 0
}

// ended is called when the peer has closed its side.
func (l *loop) ended(c *conn) {
	switch {
	case c.state == connIdle:
		l.lost(c, result.Reset)
	case c.scanner.EOF():
		l.finish(c, c.lane.target.classify(&c.scanner), l.now())
	default:
		l.lost(c, result.Reset)
	}
}

// lost ends a connection that broke. A request on it is truncated if some of its answer had come.
func (l *loop) lost(c *conn, class result.Class) {
	if c.state == connIdle {
		c.lane.idle.remove(c)
		l.retire(c)
		return
	}
	if c.scanner.Begun() {
		class = result.Truncated
	}
	l.finish(c, class, l.now())
}
