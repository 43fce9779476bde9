package ferryman

import (
	"net"
	"strconv"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// The stream as front of its exchange.

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

func (s *streamH2) reply(f *fault, retryAfter time.Duration) {
	var scratch [256]byte
	block := beginBlock(scratch[:0], f.status)
	block = h2.AppendField(block, "date", s.c.p.date(s.c.ex.Now()))
	block = h2.AppendField(block, "content-type", "text/plain; charset=utf-8")
	block = h2.AppendField(block, "content-length", strconv.Itoa(len(f.body)))
	if f.status == 503 {
		block = h2.AppendField(block, "retry-after", wholeSeconds(retryAfter))
	}
	last := s.e.ask.head || f.body == ""
	if s.appendHeaders(block, last) == nil && !last {
		_ = s.appendData([]byte(f.body), true)
	}
}

func (s *streamH2) interim(r *h1.Response) error {
	if err := s.appendHeaders(appendBlock(beginBlock(nil, r.Status), &r.Head, &dropFromResponse), false); err != nil {
		return err
	}
	return s.flush()
}

func (s *streamH2) begin(e *exchange) error {
	r := &e.resp
	drop := dropFromResponse
	drop[h1.Trailer] = e.framing != h1.Chunked
	e.head = appendBlock(beginBlock(e.head[:0], r.Status), &r.Head, &drop)
	if !hasDate(&r.Head) {
		e.head = h2.AppendField(e.head, "date", s.c.p.date(s.c.ex.Now()))
	}
	if n := e.contentLength(); n >= 0 {
		e.head = h2.AppendField(e.head, "content-length", strconv.FormatInt(n, 10))
	}
	s.c.mu.Lock()
	s.answered = true
	s.c.mu.Unlock()
	return s.appendHeaders(e.head, e.framing == h1.None || r.Status == 205)
}

// room holds no buffer for a client that takes nothing.
func (s *streamH2) room() ([]byte, error) {
	if s.out.n == 0 {
		s.c.mu.Lock()
		_, err := s.claim(1)
		s.c.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return s.out.room()
}

func (s *streamH2) commit(n int) error {
	s.out.commit(n)
	return nil
}

func (s *streamH2) flush() error {
	if s.out.n > 0 {
		return s.out.flush()
	}
	s.out.release()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.flushLocked()
}

// end ends the stream with what is left of the body, or with trailers.
func (s *streamH2) end(trailer *h1.Head) error {
	if s.sent {
		return nil
	}
	if block := trailerBlock(trailer); block != nil {
		if err := s.flush(); err != nil {
			return err
		}
		return s.appendHeaders(block, true)
	}
	defer s.out.release()
	var rest []byte
	if s.out.n > 0 {
		rest = s.out.buf[:s.out.n]
	}
	return s.appendData(rest, true)
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

// sink is where the outlet of a response sends to.
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

func (s *streamH2) tunnel(*exchange) {} // nobody asks for one

// guard has victim aborted as soon as the client is gone.
func (s *streamH2) guard(victim netloop.Aborter) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.victim = victim; victim != nil && s.lost {
		victim.Abort()
	}
}

func (s *streamH2) gone() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.lost || s.c.raw.Gone()
}
