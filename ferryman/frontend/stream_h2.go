package frontend

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// streamH2 is one HTTP/2 stream: the Frontend of an exchange and the body of its request. It is
// borrowed for the stream and serves many.
type streamH2 struct {
	e         exchange.Exchange
	req       h1.Request
	coroutine func() // run, made once
	c         *connH2
	id        uint32
	sender
	fields   h2.Fields
	raw      []byte    // the head as HTTP/1.1, which the fields of req refer to; nil: it is made again when needed
	out      h1.Writer // the payload of the response
	sink     sink
	starting int // what the head counts while it is being read
	opened   time.Time

	// What follows is guarded by the connection's lock.
	wake     condQueue     // a change of what is below
	sending  netloop.Event // where the response waits, if not there
	window   int64         // what the client takes
	received flow
	size     int64         // of the window that the client may fill
	in       h2.Queue      // the request's body as far as it has come and was not read
	taken    int64         // bytes of the body that were read
	declared int64         // its Content-Length, -1: none
	ended    bool          // the client has ended its side
	answered bool          // the final head was relayed
	short    bool          // it has ended its side before the end of the body, after that
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

// borrowStream makes a stream of the HEADERS that open it, all but its fields. It needs the connection's lock.
func borrowStream(c *connH2, h headH2) *streamH2 {
	s, _ := streamsH2.Get().(*streamH2)
	if s == nil {
		s = new(streamH2)
		s.coroutine, s.sink.s = s.run, s
	}
	s.c, s.id, s.sender, s.opened = c, h.id, c.from, c.ex.Now()
	s.window, s.size, s.received = c.initial, firstWindow, flow{left: c.firstWindow()}
	s.taken, s.ended, s.counts, s.code = 0, h.ended, true, http2.ErrCodeInternal
	s.stopped, s.finished, s.lost, s.sent, s.answered, s.short = false, false, false, false, false, false
	return s
}

// release keeps the stream's memory for another, but for what is large.
func (s *streamH2) release() {
	s.victim = nil
	s.forgetFields()
	if cap(s.raw) > maxScratch {
		returnHead(s.raw)
		s.raw = nil
	}
	if cap(s.e.Head) > maxScratch {
		returnHead(s.e.Head)
		s.e.Head = nil
	}
	streamsH2.Put(s)
}

func (s *streamH2) forgetFields() {
	if clear(s.fields.List); cap(s.fields.List) > h1.MaxFields/4 {
		s.fields.List = nil
	}
}

// declaredLength is the Content-Length, -1 for none. What is no number is for the codec to refuse.
func declaredLength(f *h2.Fields) int64 {
	for i := range f.List {
		if f.List[i].Name == "content-length" {
			if n, err := strconv.ParseInt(f.List[i].Value, 10, 64); err == nil {
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
	e.Reset(c.srv.shared, c.ex, c.srv.shared.Snapshot.Load(), s, s)
	s.sender.req = &s.req
	s.out.Reset(c.ex, &s.sink, 0)
	o := s.parse()
	if !s.large() { // or else when the head was sent, or has to wait
		s.started()
	}
	if o == nil {
		o = s.understand()
	}
	switch {
	case o == nil:
		e.Run()
	case o.Status != 0:
		c.srv.shared.Unrouted.Answered(o.Status)
		s.Reply(o, 0)
	}
}

// finish ends the stream, panics included.
func (s *streamH2) finish() {
	c := s.c
	s.out.Release()
	s.started()
	c.mu.Lock()
	c.forget(s)
	if c.running--; c.running == 0 {
		c.alone.wakeAll()
	}
	c.startSome() // as many as there may be were running, perhaps
	c.rebalance()
	ex, late := c.ex, c.due
	c.due = true
	c.mu.Unlock()
	if !late {
		ex.Defer(c.send)
	}
	s.release()
}

// forget removes a stream from its connection, with a reset if the client has not ended its side. It needs the lock.
func (c *connH2) forget(s *streamH2) {
	c.dropBody(s)
	switch {
	case s.lost:
	case !s.sent:
		c.reset(s.id, s.code)
	case !s.ended:
		c.endEarly(s.id)
	default:
		c.worked(answersPerStream)
	}
	delete(c.streams, s.id)
	s.discount()
	if len(c.streams) == 0 {
		c.idle = c.ex.Now()
		c.entry.state.Store(connIdle)
		if c.finalSent {
			c.endReader()
		}
	}
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

// cancel drops what the stream is about: nobody waits for it any more, and the client may open another. It
// needs the lock.
func (s *streamH2) cancel() {
	s.lost = true
	s.discount()
	if s.victim != nil {
		s.victim.Abort()
	}
	s.wake.wakeAll()
	if s.sending != nil {
		s.sending.Set()
	}
}
