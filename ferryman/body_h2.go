package ferryman

import (
	"io"
	"os"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// flow is a window that the client may fill (RFC 9113 section 5.2).
type flow struct {
	left int64 // what the client may still send
	owed int64 // what was used up and is not given back yet
}

// refund returns window to the client, for all streams together, once it is worth a frame.
func (c *clientH2) refund(n int64) {
	f := &c.received
	if f.owed += n; f.owed >= connWindow/4 {
		c.say(http2.FrameWindowUpdate, 0, 0, uint32(f.owed))
		f.left, f.owed = f.left+f.owed, 0
	}
}

// come takes in what has come of the body. It must be as long as declared (RFC 9113 section 8.1.1).
func (s *streamH2) come(b []byte, end bool) error {
	if s.read > 0 && len(s.in)+len(b) > cap(s.in) {
		s.in = s.in[:copy(s.in, s.in[s.read:])]
		s.read = 0
	}
	s.in = append(s.in, b...)
	s.ended = end
	n := s.taken + int64(len(s.in)-s.read)
	if s.declared >= 0 && (n > s.declared || end && n < s.declared) {
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	s.wake.wakeAll()
	return nil
}

// ready tells how many bytes of the body can be read, or how it has ended. The last byte waits for
// the client's end of the stream, lest the upstream take for whole what turns out to be malformed.
func (s *streamH2) ready() (int, error) {
	n := len(s.in) - s.read
	switch {
	case s.lost, s.stopped:
		return 0, errClientGone
	case s.ended && n == 0:
		return 0, io.EOF
	case !s.ended && s.taken+int64(n) == s.declared:
		return max(0, n-1), nil
	}
	return n, nil
}

// Started reports whether Read will not block.
func (s *streamH2) Started() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	n, err := s.ready()
	return n > 0 || err != nil
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
	n = copy(p, s.in[s.read:s.read+n])
	s.read += n
	s.taken += int64(n)
	if s.read == len(s.in) {
		s.in, s.read = s.in[:0], 0
		s.finished = s.ended
	}
	s.used(n)
	return n, s.c.flushLocked()
}

// used counts n bytes of the body, or of its padding, as read.
func (s *streamH2) used(n int) {
	s.c.refund(int64(n))
	f := &s.received
	if f.owed += int64(n); f.owed >= streamWindow/4 && !s.ended {
		s.c.say(http2.FrameWindowUpdate, 0, s.id, uint32(f.owed))
		f.left, f.owed = f.left+f.owed, 0
	}
}

func (s *streamH2) stopBody() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.stopped = true
	s.wake.wakeAll()
}

// wait waits among w, as long as a body may pause. It needs the connection's lock.
func (s *streamH2) wait(w *waiters) error {
	c, limit, late, woken := s.c, s.e.snap.config.BodyIdleTimeout, false, false
	if limit > 0 {
		defer netloop.After(limit, func() {
			c.post(func() {
				if !woken { // or else the stream may serve another connection
					late = true
					w.wakeAll()
				}
			})
		}).Stop()
	}
	w.wait(c.ex, &c.mu)
	woken = true
	if late {
		return os.ErrDeadlineExceeded
	}
	return nil
}
