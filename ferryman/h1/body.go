package h1

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// Framing says how the end of a body is known (RFC 9112 section 6.3).
type Framing uint8

const (
	None       Framing = iota // there is no body
	Length                    // Content-Length
	Chunked                   // the last chunk
	UntilClose                // the end of the connection, responses only
)

// Framing decides how the request's body is delimited.
func (r *Request) Framing() (f Framing, length int64) {
	return r.framing(None)
}

// Framing decides how the response's body is delimited. Set ToHead before.
func (r *Response) Framing() (f Framing, length int64) {
	if r.ToHead || r.Status < 200 || r.Status == 204 || r.Status == 304 {
		return None, 0
	}
	return r.framing(UntilClose)
}

func (h *Head) framing(otherwise Framing) (Framing, int64) {
	switch {
	case h.codings > 0:
		return Chunked, 0
	case h.length > 0:
		return Length, h.length
	case h.hasLength:
		return None, 0
	}
	return otherwise, 0
}

// DeclaredLength is the value of Content-Length, or -1.
func (h *Head) DeclaredLength() int64 {
	if !h.hasLength {
		return -1
	}
	return h.length
}

// DeclaresChunked reports a Transfer-Encoding.
func (h *Head) DeclaresChunked() bool { return h.codings > 0 }

// Body reads one message's body from a Reader. Its error is sticky; io.EOF means that the body
// ended as its framing says and the reader stands at what follows it.
type Body struct {
	in      *Reader
	framing Framing
	left    int64
	chunks  chunked
	err     error
}

// Reset makes b the body that follows the head that in has read last, with this framing.
func (b *Body) Reset(in *Reader, f Framing, length int64) {
	b.in, b.framing, b.left, b.err = in, f, length, nil
	b.chunks.reset()
	b.chunks.padded = f == Chunked && in.answers
	if f == None || f == Length && length == 0 {
		b.err = io.EOF
	}
}

// Done reports whether the body was read to its proper end.
func (b *Body) Done() bool { return b.err == io.EOF }

// Started reports whether anything of the body is buffered, so that Read will not block.
func (b *Body) Started() bool { return b.in.Buffered() > 0 }

// Whole reports whether the rest of the body is buffered, to its end.
func (b *Body) Whole() bool {
	switch b.framing {
	case Length:
		return int64(b.in.Buffered()) >= b.left
	case Chunked:
		rest := b.chunks
		rest.trailer, rest.fields = slices.Clone(rest.trailer), Head{}
		_, _, err := rest.decode(slices.Clone(b.in.Peek()))
		return err == nil && rest.state == chunkDone
	}
	return b.Done()
}

// Trailer returns the trailer section of a chunked body once Read has returned io.EOF.
func (b *Body) Trailer() *Head {
	if b.framing != Chunked || !b.Done() {
		return nil
	}
	return &b.chunks.fields
}

// Await blocks until a Read will not, so that the caller can do without a buffer meanwhile.
func (b *Body) Await() error {
	if b.err != nil || b.in.Buffered() > 0 {
		return nil
	}
	b.in.Release()
	return b.in.src.Await()
}

// Read reads payload into p, which must not be empty. It may return 0, nil where only framing had
// arrived. A body that is cut short is io.ErrUnexpectedEOF, broken framing an *Error.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	switch b.framing {
	case Length:
		return b.readLength(p)
	case Chunked:
		return b.readChunked(p)
	default:
		n, err := b.in.read(p)
		b.err = err
		return n, err
	}
}

// readLength asks for one byte more than there should be: a read that is not filled tells a Source
// that it has nothing left.
func (b *Body) readLength(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		p = p[:b.left+1]
	}
	n, err := b.in.read(p)
	if int64(n) > b.left {
		b.in.unreadAfter(p[b.left:n])
		n = int(b.left)
	}
	if b.left -= int64(n); b.left == 0 {
		b.err = io.EOF
	} else if err != nil {
		b.err = short(err)
	}
	if n > 0 {
		return n, nil
	}
	return 0, b.err
}

func (b *Body) readChunked(p []byte) (int, error) {
	p = p[:min(len(p), largeBuffer)] // what follows the body must fit into a buffer
	n, err := b.in.read(p)
	payload, used, bad := b.chunks.decode(p[:n])
	switch {
	case bad != nil:
		b.err = bad
	case b.chunks.state == chunkDone:
		b.in.unreadAfter(p[used:n])
		b.dropNamed()
		b.err = io.EOF
	case err != nil:
		b.err = short(err)
	}
	if payload > 0 {
		return payload, nil
	}
	return 0, b.err
}

// dropNamed marks what the message's Connection nominates (RFC 9110 section 7.6.1) in its trailer section.
func (b *Body) dropNamed() {
	for name := range bytes.SplitSeq(b.in.named, []byte(",")) {
		b.chunks.fields.drop(name)
	}
	b.in.named = nil
}

func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// read takes buffered bytes first and reads past the buffer where there are none.
func (r *Reader) read(p []byte) (int, error) {
	if r.Buffered() > 0 {
		n := copy(p, r.buf[r.r:r.w])
		r.r += n
		return n, nil
	}
	r.Release()
	return r.src.Read(p)
}

// unreadAfter puts back what follows a body. Where it came out of the buffer it still lies there.
func (r *Reader) unreadAfter(b []byte) {
	if r.buf != nil {
		r.r -= len(b)
		return
	}
	r.unread(b)
}
