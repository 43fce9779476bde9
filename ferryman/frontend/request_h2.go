package frontend

import (
	"errors"
	"io"
	"strings"
	"sync"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
)

// parse checks what HTTP/2 alone asks of a request (RFC 9113 sections 8.2 and 8.3), and has the codec of
// HTTP/1.1 read the rest: one place decides what a request is. An outcome without a status is a malformed head.
func (s *streamH2) parse() *exchange.Outcome {
	if s.fields.TooLarge {
		return exchange.Malformed(431)
	}
	if s.large() {
		s.raw = borrowHead()
	}
	head, lines, ok := h2.AppendRequest(s.raw[:0], s.fields.List)
	s.raw = head
	if !ok {
		return s.malformed()
	}
	s.req.Reset()
	n, err := s.req.Parse(s.raw)
	if err == nil && n == len(s.raw) && len(s.req.Fields) == lines {
		if !s.large() { // or else they make the head again
			s.forgetFields()
		}
		return nil
	}
	var syntax *h1.Error
	if errors.As(err, &syntax) && syntax.Status != 400 {
		return exchange.Malformed(syntax.Status)
	}
	return s.malformed()
}

// malformedH2 stands for a reset: the client gets no response.
var malformedH2 = &exchange.Outcome{}

func (s *streamH2) malformed() *exchange.Outcome {
	s.code = http2.ErrCodeProtocol
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.waste(1)
	return malformedH2
}

// AppendHead reads the fields once more where the head was stowed.
func (s *streamH2) AppendHead(dst []byte, e *exchange.Exchange) []byte {
	if s.raw == nil {
		s.parse()
	}
	if s.large() {
		dst = borrowHead()
	}
	dst = s.sender.appendHead(dst, e)
	if s.large() {
		returnHead(s.raw)
		s.raw, e.Request.Path = nil, nil
		s.req.Reset()
	}
	return dst
}

// Stow gives back a large head: a few bytes of the client's may have made it.
func (s *streamH2) Stow(e *exchange.Exchange) {
	if s.large() {
		returnHead(e.Head)
		e.Head = nil
	}
	s.started()
}

// large reports a head that is not kept while the stream waits.
func (s *streamH2) large() bool { return s.fields.Size > maxScratch }

// largeHead is more than the largest head in the form of HTTP/1.1 that is forwarded.
const largeHead = 80 << 10

var largeHeads = sync.Pool{New: func() any { return new([largeHead]byte) }}

func borrowHead() []byte { return largeHeads.Get().(*[largeHead]byte)[:0] }

// returnHead takes a large head back, unless it has outgrown its buffer.
func returnHead(b []byte) {
	if cap(b) == largeHead {
		largeHeads.Put((*[largeHead]byte)(b[:largeHead]))
	}
}

// understand fills in the Request of the exchange.
func (s *streamH2) understand() *exchange.Outcome {
	r := &s.req
	expect := false
	for i := range r.Fields {
		f := &r.Fields[i]
		switch value := r.ValueOf(f); f.Kind {
		case h1.Connection, h1.TransferEncoding, h1.Upgrade:
			return s.malformed()
		case h1.KeepAlive:
			if string(r.Name(f)) != "http2-settings" { // which means nothing here (RFC 9113 section 3.1)
				return s.malformed()
			}
		case h1.TE:
			if !strings.EqualFold(string(value), "trailers") {
				return s.malformed()
			}
		case h1.Expect:
			expect = true
		}
	}
	bodiless := s.empty()
	if !bodiless && r.DeclaredLength() == 0 { // the upstream would take the head alone for the whole
		s.started()
		if _, err := s.Read(nil); err != io.EOF {
			return s.malformed()
		}
		bodiless = true
	}
	s.e.Request = exchange.Request{
		Path: r.Path(), Idempotent: r.Idempotent(), Bodiless: bodiless, Empty: bodiless && r.ExpectsBody(),
		Chunked: !bodiless && r.DeclaredLength() < 0, Expect: expect && !bodiless, Connect: r.Connect,
		Head: r.HeadMethod, Hops: r.Hops, LastHop: r.MaxForwards == 0,
	}
	return nil
}
