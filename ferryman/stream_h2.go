package ferryman

import (
	"errors"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// streamH2 is one HTTP/2 stream: the front of an exchange and the body of its request. It is
// borrowed for the stream and serves many.
type streamH2 struct {
	e      exchange
	req    h1.Request
	strand func() // run, made once
	c      *clientH2
	id     uint32
	origin
	fields  []hpack.HeaderField
	cropped bool   // fields are not all that came
	bare    bool   // the head came with END_STREAM
	raw     []byte // the head as HTTP/1.1, which the fields of req refer to
	out     outlet // the payload of the response
	sink    sink

	// What follows is guarded by the connection's lock.
	wake     waiters // a change of what is below
	window   int64   // what the client takes
	received flow
	in       []byte        // the request's body as far as it has come and was not read
	read     int           // bytes of in that were read
	taken    int64         // bytes of the body that were read
	declared int64         // its Content-Length, -1: none
	ended    bool          // the client has ended its side
	stopped  bool          // the exchange wants no more of the body
	finished bool          // the body was read to its end
	lost     bool          // reset by either side, or the connection is lost
	sent     bool          // END_STREAM was sent
	counts   bool          // against the limit
	code     http2.ErrCode // of the reset that a stream without an end gets
	victim   netloop.Aborter
}

var errUnheard = errors.New("the client does not read")

var streamsH2 sync.Pool

// borrowStream makes a stream of the HEADERS that open it. It needs the connection's lock.
func borrowStream(c *clientH2, f *http2.MetaHeadersFrame) *streamH2 {
	s, _ := streamsH2.Get().(*streamH2)
	if s == nil {
		s = new(streamH2)
		s.strand, s.sink.s = s.run, s
	}
	s.c, s.id, s.origin = c, f.StreamID, c.from
	s.fields, s.cropped, s.bare = f.Fields, f.Truncated, f.StreamEnded()
	s.window, s.received = c.initial, flow{left: streamWindow}
	s.in, s.read, s.taken, s.declared = s.in[:0], 0, 0, declaredLength(f)
	s.ended, s.counts, s.code = s.bare, true, http2.ErrCodeInternal
	s.stopped, s.finished, s.lost, s.sent = false, false, false, false
	s.e.ask = ask{head: f.PseudoValue("method") == "HEAD"}
	return s
}

// declaredLength is the Content-Length, -1 for none. What is no number is for the codec to refuse.
func declaredLength(f *http2.MetaHeadersFrame) int64 {
	for i := range f.Fields {
		if f.Fields[i].Name == "content-length" {
			if n, err := strconv.ParseInt(f.Fields[i].Value, 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// run serves the stream.
func (s *streamH2) run() {
	defer s.finish()
	e, c := &s.e, s.c
	e.prepare(c.p, c.ex, c.p.snapshot.Load(), s, s)
	s.origin.req = &s.req
	s.out.reset(c.ex, &s.sink, 0)
	if f := s.readHead(); f != nil {
		if f.status != 0 {
			c.p.countReply(nil, f)
			s.reply(f, 0)
		}
		return
	}
	e.run()
}

// finish ends the stream, panics included: who has not ended its side is reset.
func (s *streamH2) finish() {
	c := s.c
	s.out.release()
	c.mu.Lock()
	c.refund(int64(len(s.in) - s.read))
	switch {
	case s.lost:
	case !s.sent:
		c.reset(s.id, s.code)
	case !s.ended: // RFC 9113 section 8.1: the rest of the body is not needed
		c.reset(s.id, http2.ErrCodeNo)
	}
	delete(c.streams, s.id)
	s.discount()
	if len(c.streams) == 0 {
		c.idle = c.ex.Now()
		c.entry.state.Store(clientIdle)
		if c.parted {
			c.hangUp()
		}
	}
	if c.running--; c.running == 0 {
		c.alone.wakeAll()
	}
	c.relieve()
	ex, late := c.ex, c.due
	c.due = true
	c.mu.Unlock()
	if !late {
		ex.Defer(c.send)
	}
	s.victim, s.fields = nil, nil
	if cap(s.in) > maxScratch {
		s.in = nil
	}
	if cap(s.raw) > maxScratch {
		s.raw = nil
	}
	if cap(s.e.head) > maxScratch {
		s.e.head = nil
	}
	streamsH2.Put(s)
}

// endSent notes the end of the response.
func (s *streamH2) endSent() {
	s.sent = true
	if s.ended {
		s.discount()
	}
}

// discount makes room for another stream: the client may open one as soon as it has seen the end.
func (s *streamH2) discount() {
	if s.counts {
		s.counts = false
		s.c.open--
	}
}

// cancel drops what the stream is about: nobody waits for it any more. It needs the lock.
func (s *streamH2) cancel() {
	s.lost = true
	if s.victim != nil {
		s.victim.Abort()
	}
	s.wake.wakeAll()
	s.c.room.wakeAll()
	s.c.credit.wakeAll()
}
