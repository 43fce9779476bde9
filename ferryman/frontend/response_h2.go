package frontend

import (
	"net"
	"strconv"
	"time"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// The stream as Frontend of its exchange.

// beginBlock begins a response's header block, with a byte to spare for appendHeaders.
func beginBlock(dst []byte, status int) []byte { return h2.AppendStatus(append(dst, 0), status) }

// appendBlock appends the fields of a head that are not to be dropped.
func appendBlock(dst []byte, h *h1.Head, drop *kinds) []byte {
	for i := range h.Fields {
		if f := &h.Fields[i]; !drop[f.Kind] {
			dst = h2.AppendField(dst, h.Name(f), h.ValueOf(f))
		}
	}
	return dst
}

func (s *streamH2) Reply(o *exchange.Outcome, retryAfter time.Duration) {
	var scratch [256]byte
	block := beginBlock(scratch[:0], o.Status)
	block = h2.AppendField(block, "date", s.c.srv.date(s.c.ex.Now()))
	block = h2.AppendField(block, "content-type", "text/plain; charset=utf-8")
	block = h2.AppendField(block, "content-length", strconv.Itoa(len(o.Body)))
	if o.Status == 503 {
		block = h2.AppendField(block, "retry-after", wholeSeconds(retryAfter))
	}
	last := s.e.Request.Head || o.Body == ""
	if s.appendHeaders(block, last) == nil && !last {
		_ = s.appendData([]byte(o.Body), true)
	}
}

func (s *streamH2) Interim(r *h1.Response) error {
	if err := s.appendHeaders(appendBlock(beginBlock(nil, r.Status), &r.Head, &dropFromResponse), false); err != nil {
		return err
	}
	return s.Flush()
}

func (s *streamH2) Begin(e *exchange.Exchange) error {
	r := &e.Response
	drop := dropFromResponse
	drop[h1.Trailer] = e.Framing != h1.Chunked
	e.Head = appendBlock(beginBlock(e.Head[:0], r.Status), &r.Head, &drop)
	if !hasDate(&r.Head) {
		e.Head = h2.AppendField(e.Head, "date", s.c.srv.date(s.c.ex.Now()))
	}
	if n := contentLength(e); n >= 0 {
		e.Head = h2.AppendField(e.Head, "content-length", strconv.FormatInt(n, 10))
	}
	s.c.mu.Lock()
	s.answered = true
	s.c.mu.Unlock()
	return s.appendHeaders(e.Head, e.Framing == h1.None || r.Status == 205)
}

// Free holds no buffer for a client that takes nothing.
func (s *streamH2) Free() ([]byte, error) {
	if len(s.out.Waiting()) == 0 {
		s.c.mu.Lock()
		_, err := s.reserveWindow(1)
		s.c.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return s.out.Free()
}

func (s *streamH2) Written(n int) { s.out.Written(n) }

func (s *streamH2) Flush() error {
	if len(s.out.Waiting()) > 0 {
		return s.out.Flush()
	}
	s.out.Release()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.flushLocked()
}

// End ends the stream with what is left of the body, or with trailers.
func (s *streamH2) End(trailer *h1.Head) error {
	if s.sent {
		return nil
	}
	if block := trailerBlock(trailer); block != nil {
		if err := s.Flush(); err != nil {
			return err
		}
		return s.appendHeaders(block, true)
	}
	defer s.out.Release()
	return s.appendData(s.out.Waiting(), true)
}

// trailerBlock is the header block of those trailers that may go further, nil where there is none.
func trailerBlock(trailer *h1.Head) (block []byte) {
	for i := 0; trailer != nil && i < len(trailer.Fields); i++ {
		f := &trailer.Fields[i]
		if !f.Kind.InTrailer() {
			continue
		}
		if block == nil {
			block = make([]byte, 1, 256) // the byte to spare
		}
		block = h2.AppendField(block, trailer.Name(f), trailer.ValueOf(f))
	}
	return block
}

// sink is where the message writer of a response sends to.
type sink struct {
	net.Conn
	s *streamH2
}

func (k *sink) Write(b []byte) (int, error) {
	if err := k.s.appendData(b, false); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Hijack is for an upgrade, which HTTP/2 does not have (RFC 9113 section 8.6).
func (s *streamH2) Hijack() (net.Conn, netloop.Conn, *h1.Reader) {
	panic("an HTTP/2 stream is no tunnel")
}

// Guard has victim aborted as soon as the client is gone.
func (s *streamH2) Guard(victim netloop.Aborter) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.victim = victim; victim != nil && s.lost {
		victim.Abort()
	}
}

func (s *streamH2) Gone() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.lost || s.c.raw.Gone()
}
