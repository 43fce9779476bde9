package ferryman

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// outletSize is what one send carries at most; a chunk's payload must stay under 64 KiB.
const outletSize = 32 << 10

var outlets = sync.Pool{New: func() any { return new([outletSize]byte) }}

// outlet sends one HTTP/1.1 message, to a client or to an upstream. It gathers the head and the
// pieces of the body that are there already into one send, and holds a buffer only while bytes
// wait in it.
type outlet struct {
	ex      netloop.Executor
	conn    net.Conn
	stall   time.Duration // a send without progress for so long fails; 0: never
	chunked bool
	stalled bool // a send failed for want of progress
	buf     *[outletSize]byte
	n       int
}

func (o *outlet) reset(ex netloop.Executor, conn net.Conn, stall time.Duration) {
	*o = outlet{ex: ex, conn: conn, stall: stall}
}

func (o *outlet) borrow() {
	if o.buf == nil {
		o.buf = outlets.Get().(*[outletSize]byte)
	}
}

// release gives the buffer back with whatever is in it.
func (o *outlet) release() {
	if o.buf != nil {
		outlets.Put(o.buf)
		o.buf, o.n = nil, 0
	}
}

// add puts bytes of a head, or raw ones, behind what waits.
func (o *outlet) add(b []byte) error {
	if o.n+len(b) > outletSize {
		if err := o.flush(); err != nil {
			return err
		}
		if len(b) > outletSize {
			return o.write(b)
		}
	}
	o.borrow()
	o.n += copy(o.buf[o.n:], b)
	return nil
}

// room returns where the next payload goes. It is never empty; commit tells how much was put there.
func (o *outlet) room() ([]byte, error) {
	const least = 512 // smaller pieces are not worth a read
	if o.n > outletSize-least-h1.ChunkFront-h1.ChunkBack {
		if err := o.flush(); err != nil {
			return nil, err
		}
	}
	o.borrow()
	if o.chunked {
		return o.buf[o.n+h1.ChunkFront : outletSize-h1.ChunkBack], nil
	}
	return o.buf[o.n:], nil
}

// commit takes n bytes of the room as payload.
func (o *outlet) commit(n int) {
	if n == 0 {
		return
	}
	if o.chunked {
		framed := h1.Chunk(o.buf[o.n:], n)
		n = copy(o.buf[o.n:], framed) // closes the gap that a short size leaves
	}
	o.n += n
}

// flush sends what waits and gives the buffer back.
func (o *outlet) flush() error {
	if o.n == 0 {
		o.release()
		return nil
	}
	err := o.write(o.buf[:o.n])
	o.release()
	return err
}

// write sends b whole. Its limit is one of progress: each byte that the peer takes starts it anew.
func (o *outlet) write(b []byte) error {
	for {
		if o.stall > 0 {
			o.conn.SetWriteDeadline(o.ex.Now().Add(o.stall))
		}
		n, err := o.conn.Write(b)
		if err == nil {
			return nil
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if !late || !taken(n, err) {
			o.stalled = late
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

// end ends a chunked body and sends everything.
func (o *outlet) end(trailer *h1.Head) error {
	if o.chunked {
		var scratch [256]byte
		if err := o.add(h1.AppendTrailer(scratch[:0], trailer)); err != nil {
			return err
		}
	}
	return o.flush()
}
