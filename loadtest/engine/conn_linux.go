package engine

import (
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
	"golang.org/x/sys/unix"
)

type connState uint8

const (
	connDown connState = iota
	connDialling
	connIdle
	connSending // part of the request is not written yet
	connWaiting // for the answer
)

// conn is one connection of a lane, over as many sockets as it takes.
type conn struct {
	lane       *lane
	index      int32 // in loop.conns
	fd         int
	generation int32 // grows with each socket, to tell late events of the one before
	state      connState

	intended, sent time.Duration // of the request at work
	lag            time.Duration
	free           time.Duration // since when it is idle
	received       int64
	rest           []byte // of the request, not written yet
	scanner        wire.Scanner
}

// atWork reports whether a request is on the connection. One that is only being dialled before the
// schedule begins has none.
func (c *conn) atWork() bool {
	return c.state == connSending || c.state == connWaiting || (c.state == connDialling && c.rest != nil)
}

// begin sends the request that is due at intended, dialling first if need be.
func (l *loop) begin(c *conn, intended time.Duration) {
	c.intended, c.sent, c.received = intended, l.now(), 0
	c.rest = c.lane.target.bytes
	c.scanner.Reset(c.lane.target.expect)
	l.out++
	l.unwritten++
	if c.state == connIdle {
		c.lag = c.sent - max(intended, c.free)
		l.write(c)
		return
	}
	c.lag = result.NoLag // no connection was idle: the delay is not the generator's
	if err := l.dial(c); err != nil {
		l.dialErr = err
		l.finish(c, result.Connect, l.now())
		return
	}
	if c.state != connDialling {
		l.write(c)
	}
}

// dial opens a new socket; the state tells whether it is connected already.
func (l *loop) dial(c *conn) error {
	l.r.dials.Add(1)
	fd, connected, err := dial(c.lane.target.addr)
	if err != nil {
		return err
	}
	c.fd, c.state = fd, connDialling
	c.generation++
	event := unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.index, Pad: c.generation,
	}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		_ = unix.Close(fd)
		c.fd, c.state = -1, connDown
		return err
	}
	if connected {
		l.connected(c)
	}
	return nil
}

// connected makes a dialled connection ready for its first request.
func (l *loop) connected(c *conn) {
	c.state = connIdle
	l.r.open.Add(1)
}

// write sends what is left of the request.
func (l *loop) write(c *conn) {
	c.state = connSending
	for len(c.rest) > 0 {
		n, errno := send(c.fd, c.rest)
		switch errno {
		case 0:
			c.rest = c.rest[n:]
		case syscall.EAGAIN:
			return // an event will tell
		case syscall.EINTR:
		default:
			l.finish(c, result.Reset, l.now())
			return
		}
	}
	c.state = connWaiting
	l.unwritten--
}

// handle acts on what epoll says about a connection.
func (l *loop) handle(c *conn, events uint32) {
	if c.state == connDialling {
		if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) == 0 || !l.dialled(c) {
			return
		}
	}
	if c.state == connSending && events&unix.EPOLLOUT != 0 {
		l.write(c)
	}
	if c.fd >= 0 && events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		l.read(c, events&(unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) != 0)
	}
	l.serve(c.lane)
}

// dialled ends a connection attempt and reports whether it succeeded.
func (l *loop) dialled(c *conn) bool {
	if err := connectError(c.fd); err != nil {
		l.dialErr = err
		if c.rest != nil {
			l.finish(c, result.Connect, l.now())
			l.serve(c.lane)
			return false
		}
		l.retire(c)
		return false
	}
	l.connected(c)
	if c.rest != nil {
		l.write(c)
	} else {
		c.lane.idle.push(c)
	}
	return true
}

// finish records the outcome of the request at work. The connection stays if the answer was whole
// and leaves it open.
func (l *loop) finish(c *conn, class result.Class, now time.Duration) {
	status := c.scanner.Status
	l.recorder.Record(result.Sample{
		Target: c.lane.Target, Class: class, Status: status, Bytes: c.received,
		Intended: c.intended, Sent: c.sent, Done: now, Lag: c.lag,
	})
	l.out--
	if c.state != connWaiting {
		l.unwritten--
	}
	c.rest = nil
	whole := class == result.OK || class == result.Refused || class == result.Status || class == result.WrongBody
	if !whole || c.scanner.Close || l.r.plan.NoKeepAlive {
		l.retire(c)
	} else {
		c.state, c.free = connIdle, now
		c.lane.idle.push(c)
	}
	if l.r.plan.Capacity && whole && now < l.r.end() {
		l.again(c.lane)
	}
}

// again starts the next request of a closed loop. One that fails waits for the sweep, so that a
// dead target is not dialled in a tight loop.
func (l *loop) again(ln *lane) {
	if c := ln.take(); c != nil {
		l.begin(c, l.now())
	}
}

// retire drops a connection that the next request may dial again.
func (l *loop) retire(c *conn) {
	l.drop(c)
	c.lane.down = append(c.lane.down, c)
}

// drop closes the socket, if there is one.
func (l *loop) drop(c *conn) {
	if c.fd < 0 {
		return
	}
	if c.state != connDialling {
		l.r.open.Add(-1)
	}
	_ = unix.Close(c.fd) // also leaves the epoll set
	c.fd, c.state = -1, connDown
}
