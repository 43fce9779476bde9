package frontend

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

const (
	connWindow   = 16 << 20 // bytes of requests' bodies that may wait for upstreams on a connection
	firstWindow  = 32 << 10 // the same for a stream that nothing was read of: one that stalls stops no other
	largeWindow  = 1 << 20  // and for one whose bytes are read as they come
	maxGrowth    = connWindow - maxStreams*firstWindow
	fairShare    = 64 << 10 // what may wait on a connection when too much waits on all of them
	pressureTick = 50 * time.Millisecond
)

// flow is a window that the client may fill (RFC 9113 section 5.2).
type flow struct {
	left int64 // what the client may still send
	owed int64 // what was used up and is not given back yet
}

// uploadsH2 is what a connection's requests' bodies may take. Its lock guards it.
type uploadsH2 struct {
	received flow
	growth   int64        // bytes by which windows of streams may still grow
	unread   atomic.Int64 // bytes of memory for bodies that wait
	heard    bool         // the client knows firstWindow, and not the default
}

// firstWindow is what a new stream may send: a client that has not heard of ours has another.
func (c *connH2) firstWindow() int64 {
	if c.heard {
		return firstWindow
	}
	return defaultWindow
}

// heardSettings is for the first acknowledgement of ferryman's settings (RFC 9113 section 6.9.2).
func (c *connH2) heardSettings() {
	if c.heard {
		return
	}
	c.heard = true
	for _, s := range c.streams {
		s.received.left += firstWindow - defaultWindow
	}
}

// refund returns window to the client, for all streams together, once it is worth a frame.
func (c *connH2) refund(n int64) {
	f := &c.received
	if f.owed += n; f.owed >= connWindow/4 {
		c.writeControl(http2.FrameWindowUpdate, 0, 0, uint32(f.owed))
		f.left, f.owed = f.left+f.owed, 0
	}
}

// waits counts n bytes more of memory for bodies that wait for an upstream, or fewer.
func (c *connH2) waits(n int) {
	c.unread.Add(int64(n))
	c.srv.unread.Add(int64(n))
}

// waitForUploads has the reader wait while too much waits on all connections, and more than its share on this one.
func (c *connH2) waitForUploads() {
	for c.srv.unread.Load() > c.srv.UnreadLimit && c.unread.Load() > fairShare && !c.raw.Gone() {
		g := c.ex.NewEvent()
		time.AfterFunc(pressureTick, func() { c.post(g.Set) })
		g.Wait()
	}
}

// receive takes in what has come of the body. It must be as long as declared (RFC 9113 section 8.1.1), but for a
// client that has its answer already and gives up the rest, as curl does: the answer goes on, the body does not.
func (s *streamH2) receive(b []byte, end bool) error {
	s.c.waits(s.in.Append(b))
	s.ended = end
	n := s.taken + int64(s.in.Len())
	s.short = end && n < s.declared && s.answered
	if s.declared >= 0 && (n > s.declared || end && n < s.declared && !s.short) {
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	s.wake.wakeAll()
	return nil
}

// ready tells how many bytes of the body can be read, or how it has ended. The last byte waits for
// the client's end of the stream, lest the upstream take for whole what turns out to be malformed.
func (s *streamH2) ready() (int, error) {
	n := s.in.Len()
	switch {
	case s.lost, s.stopped:
		return 0, exchange.ErrClientGone
	case s.short:
		return 0, nil
	case s.ended && n == 0:
		return 0, io.EOF
	case !s.ended && s.taken+int64(n) == s.declared:
		return max(0, n-1), nil
	}
	return n, nil
}

// empty reports whether the request has ended without a body.
func (s *streamH2) empty() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	_, err := s.ready()
	return err == io.EOF && s.taken == 0
}

// Started reports whether Read will not block.
func (s *streamH2) Started() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	n, err := s.ready()
	return n > 0 || err != nil
}

// Whole reports whether all of it has come.
func (s *streamH2) Whole() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.ended
}

// Done reports whether the body was read to its end.
func (s *streamH2) Done() bool { return s.finished }

// Await blocks until Read will not.
func (s *streamH2) Await() error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for {
		if n, err := s.ready(); n > 0 || err != nil {
			return nil
		}
		if err := s.wait(&s.wake); err != nil {
			return err
		}
	}
}

// Read takes what has come of the body, and lets the client send as much again.
func (s *streamH2) Read(p []byte) (int, error) {
	if err := s.Await(); err != nil {
		return 0, err
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	n, err := s.ready()
	if err != nil {
		s.finished = err == io.EOF
		return 0, err
	}
	n, given := s.in.Read(p[:min(n, len(p))])
	s.c.waits(-given)
	s.taken += int64(n)
	s.finished = s.ended && s.in.Len() == 0
	s.used(n)
	return n, s.c.flushLocked()
}

// used counts n bytes of the body, or of its padding, as read. A client that is read as fast as it sends gets
// a larger window.
func (s *streamH2) used(n int) {
	c, f := s.c, &s.received
	c.refund(int64(n))
	if f.owed += int64(n); f.owed < s.size/4 || s.ended {
		return
	}
	more := int64(0)
	if int64(s.in.Len()) <= s.size/2 && c.srv.unread.Load() < c.srv.UnreadLimit/2 {
		more = min(s.size, largeWindow-s.size, c.growth)
	}
	s.size += more
	c.growth -= more
	c.writeControl(http2.FrameWindowUpdate, 0, s.id, uint32(f.owed+more))
	f.left, f.owed = f.left+f.owed+more, 0
}

// dropBody gives back what a stream's body takes.
func (c *connH2) dropBody(s *streamH2) {
	c.refund(int64(s.in.Len()))
	c.waits(-s.in.Drop())
	c.growth += s.size - firstWindow
}

func (s *streamH2) StopBody() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.stopped = true
	s.wake.wakeAll()
}

// wait waits among w, as long as a body may pause. It needs the connection's lock.
func (s *streamH2) wait(w *condQueue) error {
	c, limit, late, woken := s.c, s.e.Snapshot().BodyIdleTimeout, false, false
	g := c.ex.NewEvent()
	if limit > 0 {
		defer netloop.After(limit, func() {
			c.post(func() {
				if !woken { // or else the stream may serve another connection
					late = true
					g.Set()
				}
			})
		}).Stop()
	}
	if w != &s.wake {
		s.sending = g
		defer func() { s.sending = nil }()
	}
	w.waitAt(g, &c.mu)
	woken = true
	if late {
		return os.ErrDeadlineExceeded
	}
	return nil
}
