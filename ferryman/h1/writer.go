package h1

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// BufferSize is what one send carries at most; a chunk's payload must stay under 64 KiB.
const BufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

// BorrowBuffer returns a buffer for what is to be sent; ReturnBuffer takes it back.
func BorrowBuffer() *[BufferSize]byte { return buffers.Get().(*[BufferSize]byte) }

// ReturnBuffer takes back what BorrowBuffer has returned.
func ReturnBuffer(b *[BufferSize]byte) { buffers.Put(b) }

// Clock tells the time.
type Clock interface{ Now() time.Time }

// Writer sends one message, to a client or to an upstream. It gathers the head and the pieces of the body that
// are there already into one send, and holds a buffer only while bytes wait in it. Reset makes it usable.
type Writer struct {
	Chunked bool // the payload goes out in chunks
	Stalled bool // a send failed for want of progress

	clock Clock
	conn  net.Conn
	stall time.Duration
	buf   *[BufferSize]byte
	n     int
}

// Reset begins a message to conn. A send without progress for stall fails with os.ErrDeadlineExceeded; 0: never.
func (w *Writer) Reset(clock Clock, conn net.Conn, stall time.Duration) {
	*w = Writer{clock: clock, conn: conn, stall: stall}
}

func (w *Writer) borrow() {
	if w.buf == nil {
		w.buf = BorrowBuffer()
	}
}

// Release gives the buffer back with whatever is in it.
func (w *Writer) Release() {
	if w.buf != nil {
		ReturnBuffer(w.buf)
		w.buf, w.n = nil, 0
	}
}

// Waiting is what was not sent yet. It is valid until the next call.
func (w *Writer) Waiting() []byte {
	if w.n == 0 {
		return nil
	}
	return w.buf[:w.n]
}

// Append puts bytes of a head, or raw ones, behind what waits.
func (w *Writer) Append(b []byte) error {
	if w.n+len(b) > BufferSize {
		if err := w.Flush(); err != nil {
			return err
		}
		if len(b) > BufferSize {
			return w.Send(b)
		}
	}
	w.borrow()
	w.n += copy(w.buf[w.n:], b)
	return nil
}

// Free returns where the next payload goes. It is never empty; Written tells how much was put there.
func (w *Writer) Free() ([]byte, error) {
	const least = 512 // smaller pieces are not worth a read
	if w.n > BufferSize-least-ChunkFront-ChunkBack {
		if err := w.Flush(); err != nil {
			return nil, err
		}
	}
	w.borrow()
	if w.Chunked {
		return w.buf[w.n+ChunkFront : BufferSize-ChunkBack], nil
	}
	return w.buf[w.n:], nil
}

// Written takes n bytes of the free space as payload.
func (w *Writer) Written(n int) {
	if n == 0 {
		return
	}
	if w.Chunked {
		framed := Chunk(w.buf[w.n:], n)
		n = copy(w.buf[w.n:], framed) // closes the gap that a short size leaves
	}
	w.n += n
}

// Flush sends what waits and gives the buffer back.
func (w *Writer) Flush() error {
	if w.n == 0 {
		w.Release()
		return nil
	}
	err := w.Send(w.buf[:w.n])
	w.Release()
	return err
}

// Send sends b whole, past what waits. Its limit is one of progress: each byte that the peer takes starts it anew.
func (w *Writer) Send(b []byte) error {
	for {
		if w.stall > 0 {
			w.conn.SetWriteDeadline(w.clock.Now().Add(w.stall))
		}
		n, err := w.conn.Write(b)
		if err == nil {
			return nil
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if !late || !taken(n, err) {
			w.Stalled = late
			return err
		}
		b = b[n:]
	}
}

// taken reports whether the peer took anything of a Write that was late. Above TLS its count, which is of
// what was encrypted, does not tell, and the error does.
func taken(n int, err error) bool {
	var t interface{ Taken() bool }
	if errors.As(err, &t) {
		return t.Taken()
	}
	return n > 0
}

// End ends a chunked body, with the trailers that may go further, and sends everything.
func (w *Writer) End(trailer *Head) error {
	if w.Chunked {
		var scratch [256]byte
		if err := w.Append(AppendTrailer(scratch[:0], trailer)); err != nil {
			return err
		}
	}
	return w.Flush()
}
