package h1

import (
	"bytes"
	"io"
	"sync"
)

// Source is where a reader's bytes come from. Await blocks until a Read would not, and lets the
// reader do without a buffer meanwhile; it may return nil at once.
type Source interface {
	io.Reader
	Await() error
}

// Buffers come in three sizes: one for the heads that one meets, one for the largest that is allowed (and
// some bytes more, to see that a head is too large), and one between, so that no buffer is many times as
// large as what has come.
const (
	smallBuffer  = 4 << 10
	middleBuffer = 16 << 10
	largeBuffer  = MaxHead + 1024
)

var (
	small  = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	middle = sync.Pool{New: func() any { return new([middleBuffer]byte) }}
	large  = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// borrow returns a buffer for n bytes.
func borrow(n int) []byte {
	switch {
	case n <= smallBuffer:
		return small.Get().(*[smallBuffer]byte)[:]
	case n <= middleBuffer:
		return middle.Get().(*[middleBuffer]byte)[:]
	}
	return large.Get().(*[largeBuffer]byte)[:]
}

// Reader reads heads and bodies from a Source. It holds a buffer only while there are bytes in it.
type Reader struct {
	src  Source
	buf  []byte
	r, w int

	answers bool   // the last head was a response's
	named   []byte // the names that its Connection nominates, for the trailer section behind it
}

// NewReader returns a reader without a buffer.
func NewReader(src Source) *Reader { return &Reader{src: src} }

// Reset makes r read from src; bytes that are still buffered are forgotten.
func (r *Reader) Reset(src Source) {
	r.Release()
	r.src = src
}

// Follow makes r go on reading from src, behind what is buffered.
func (r *Reader) Follow(src Source) { r.src = src }

// Buffered is the number of bytes that were received and not used yet.
func (r *Reader) Buffered() int { return r.w - r.r }

// Peek returns the buffered bytes; they are valid until the next call.
func (r *Reader) Peek() []byte { return r.buf[r.r:r.w] }

// Discard uses up n buffered bytes. The buffer stays until Fill or Release, so that a head that
// lies in it can still be looked at.
func (r *Reader) Discard(n int) { r.r += n }

// SkipEmptyLines uses up the empty lines at the front of what is buffered, at most limit of them, and
// returns how many these were. half: what is left may be the first half of another.
func (r *Reader) SkipEmptyLines(limit int) (n int, half bool) {
	for n < limit && bytes.HasPrefix(r.Peek(), []byte("\r\n")) {
		r.Discard(2)
		n++
	}
	return n, string(r.Peek()) == "\r"
}

// Release gives the buffer back, with whatever is in it.
func (r *Reader) Release() {
	switch len(r.buf) {
	case smallBuffer:
		small.Put((*[smallBuffer]byte)(r.buf))
	case middleBuffer:
		middle.Put((*[middleBuffer]byte)(r.buf))
	case largeBuffer:
		large.Put((*[largeBuffer]byte)(r.buf))
	}
	r.buf, r.r, r.w = nil, 0, 0
}

// Trim gives the buffer back if nothing is left in it.
func (r *Reader) Trim() {
	if r.r == r.w {
		r.Release()
	}
}

// Fill waits for bytes and adds them to the buffered ones. io.EOF: the peer has ended its side.
func (r *Reader) Fill() error {
	if r.r == r.w {
		r.Release()
		if err := r.src.Await(); err != nil {
			return err
		}
		r.buf = borrow(smallBuffer)
	}
	if r.w == len(r.buf) {
		r.makeRoom()
	}
	n, err := r.src.Read(r.buf[r.w:])
	r.w += n
	if n > 0 {
		return nil
	}
	r.Trim()
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// makeRoom moves the bytes to the buffer's start or into a larger one.
func (r *Reader) makeRoom() {
	held := r.buf[r.r:r.w]
	if r.r > 0 || len(r.buf) == largeBuffer {
		r.r, r.w = 0, copy(r.buf, held)
		return
	}
	next := borrow(len(r.buf) + 1)
	n := copy(next, held)
	r.Release()
	r.buf, r.w = next, n
}

// unread puts bytes back that were read past the end of a body; nothing is buffered then.
func (r *Reader) unread(b []byte) {
	if len(b) == 0 {
		return
	}
	r.Release()
	r.buf = borrow(len(b))
	r.w = copy(r.buf, b)
}

// Request parses a request head from what is buffered; SkipEmptyLines takes off what may come before it.
// done is false where Fill is needed first.
// req refers to the buffer: it is valid until the next Fill, Release, Trim or body read.
func (r *Reader) Request(req *Request) (done bool, err error) {
	n, err := req.Parse(r.Peek())
	r.parsed(n, &req.Head, false)
	return n > 0, err
}

// Response parses a response head as Request does a request's.
func (r *Reader) Response(resp *Response) (done bool, err error) {
	n, err := resp.Parse(r.Peek())
	r.parsed(n, &resp.Head, true)
	return n > 0, err
}

// parsed uses up a head of n bytes and keeps what the body behind it is read by.
func (r *Reader) parsed(n int, h *Head, answers bool) {
	if n == 0 {
		return
	}
	r.Discard(n)
	r.answers, r.named = answers, nil
	if h.codings == 0 {
		return
	}
	for _, o := range h.options {
		r.named = append(append(r.named, h.raw[o.from:o.to]...), ',')
	}
}
