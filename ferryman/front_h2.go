package ferryman

import (
	"net"
	"strconv"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// The stream as front of its exchange. Header blocks are written without a dynamic table: a table
// would save bytes and cost an order among streams, a lookup for each field and memory for each
// connection.

const (
	noDynamicTable = 0x20 // dynamic table size update to 0 (RFC 7541 section 6.3)
	plainField     = 0x00 // literal without indexing, new name (section 6.2.2)
	plainStatus    = 0x08 // the same with the name of index 8, ":status"
)

// staticStatus are the codes that have an index of their own (RFC 7541 appendix A).
var staticStatus = map[int]byte{200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}

// appendStatus begins a header block, with a byte to spare for appendHeaders.
func appendStatus(dst []byte, status int) []byte {
	if i, ok := staticStatus[status]; ok {
		return append(dst, 0, 0x80|i)
	}
	return strconv.AppendInt(append(dst, 0, plainStatus, 3), int64(status), 10)
}

// appendBlockField appends a field, its name in lower case.
func appendBlockField[T string | []byte](dst []byte, name, value T) []byte {
	dst = appendSize(append(dst, plainField), len(name))
	for i := range len(name) {
		c := name[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return append(appendSize(dst, len(value)), value...)
}

// appendSize appends an integer with a prefix of seven bits (RFC 7541 section 5.1).
func appendSize(dst []byte, n int) []byte {
	const prefix = 1<<7 - 1
	if n < prefix {
		return append(dst, byte(n))
	}
	dst = append(dst, prefix)
	for n -= prefix; n >= 1<<7; n >>= 7 {
		dst = append(dst, 1<<7|byte(n))
	}
	return append(dst, byte(n))
}

// appendBlock appends the fields of a head that are not to be dropped.
func appendBlock(dst []byte, h *h1.Head, drop *kinds) []byte {
	for i := range h.Fields {
		if f := &h.Fields[i]; !drop[f.Kind] {
			dst = appendBlockField(dst, h.Name(f), h.ValueOf(f))
		}
	}
	return dst
}

func (s *streamH2) reply(f *fault, retryAfter time.Duration) {
	var scratch [256]byte
	block := appendStatus(scratch[:0], f.status)
	block = appendBlockField(block, "date", s.c.p.date(s.c.ex.Now()))
	block = appendBlockField(block, "content-type", "text/plain; charset=utf-8")
	block = appendBlockField(block, "content-length", strconv.Itoa(len(f.body)))
	if f.status == 503 {
		block = appendBlockField(block, "retry-after", wholeSeconds(retryAfter))
	}
	last := s.e.ask.head || f.body == ""
	if s.appendHeaders(block, last) == nil && !last {
		_ = s.appendData([]byte(f.body), true)
	}
}

func (s *streamH2) interim(r *h1.Response) error {
	if err := s.appendHeaders(appendBlock(appendStatus(nil, r.Status), &r.Head, &dropFromResponse), false); err != nil {
		return err
	}
	return s.flush()
}

func (s *streamH2) begin(e *exchange) error {
	r := &e.resp
	drop := dropFromResponse
	drop[h1.Trailer] = e.framing != h1.Chunked
	e.head = appendBlock(appendStatus(e.head[:0], r.Status), &r.Head, &drop)
	if !hasDate(&r.Head) {
		e.head = appendBlockField(e.head, "date", s.c.p.date(s.c.ex.Now()))
	}
	if n := e.contentLength(); n >= 0 {
		e.head = appendBlockField(e.head, "content-length", strconv.FormatInt(n, 10))
	}
	return s.appendHeaders(e.head, e.framing == h1.None || r.Status == 205)
}

func (s *streamH2) room() ([]byte, error) { return s.out.room() }

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
		block = appendBlockField(block, trailer.Name(f), trailer.ValueOf(f))
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
	return s.lost
}
