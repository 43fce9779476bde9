package echo

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// listener hands out connections that can reset, hold and trickle.
type listener struct {
	net.Listener
	s *Server
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.s.opened.Add(1)
	l.s.openNow.Add(1)
	return &conn{Conn: c, open: &l.s.openNow}, nil
}

// conn is a client connection. It belongs to the goroutine that serves it.
type conn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
	slow   *trickle // non-nil while an answer's body is slowed down

	// What a loop has left.
	unread, unsent []byte
	last           bool // nothing is to be read behind unsent
}

// connOf is the connection that a request came on.
func connOf(ctx *fasthttp.RequestCtx) *conn { return ctx.Conn().(*conn) }

// Close may be called more than once; the server closes again what a fault closed.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.open.Add(-1)
	return c.Conn.Close()
}

// reset ends the connection with a RST instead of a FIN.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that is gone already
	}
	_ = c.Close()
}

// readUntilGone reads and discards until the connection ends, then closes left.
func (c *conn) readUntilGone(left chan<- struct{}) {
	defer close(left)
	scratch := make([]byte, 512)
	for {
		if _, err := c.Conn.Read(scratch); err != nil {
			return
		}
	}
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.unsent) > 0 {
		if _, err := c.Conn.Write(c.unsent); err != nil {
			return 0, err
		}
		c.unsent = nil
	}
	if c.last {
		return 0, io.EOF
	}
	if len(c.unread) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *conn) Write(p []byte) (int, error) {
	if c.slow == nil {
		return c.Conn.Write(p)
	}
	return c.slow.write(c.Conn, p)
}

// trickleSteps is how many pieces a slow body is cut into, if it has that many bytes.
const trickleSteps = 10

// trickle stretches the body of one answer. The head passes at once.
type trickle struct {
	pause    time.Duration
	piece    int // bytes between two pauses; 0: as they are written (a body of unknown length)
	wait     func(time.Duration)
	headSent bool
}

// newTrickle stretches size bytes over d. A negative size is unknown: then each chunk waits its share.
func newTrickle(d time.Duration, size int, wait func(time.Duration)) *trickle {
	t := &trickle{pause: d / trickleSteps, wait: wait}
	if size > 0 {
		t.piece = (size + trickleSteps - 1) / trickleSteps
		t.pause = d / time.Duration((size+t.piece-1)/t.piece)
	}
	return t
}

func (t *trickle) write(w net.Conn, p []byte) (written int, err error) {
	if !t.headSent {
		end := bytes.Index(p, []byte("\r\n\r\n"))
		if end < 0 {
			return w.Write(p)
		}
		t.headSent = true
		if written, err = w.Write(p[:end+4]); err != nil {
			return written, err
		}
	}
	for written < len(p) {
		piece := p[written:]
		if t.piece > 0 && len(piece) > t.piece {
			piece = piece[:t.piece]
		}
		t.wait(t.pause)
		n, err := w.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
