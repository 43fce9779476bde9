package tunnel

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// End is one of the two connections.
type End struct {
	Conn net.Conn     // to read from and write to; it may be TLS above Raw
	Raw  netloop.Conn // the socket
	In   *h1.Reader   // what Conn is read through: it may hold bytes already
}

// Join carries bytes both ways and returns when both directions have ended. idle is how long nothing may move; 0 is no
// limit. What a sends begins behind first, which may wait, and ends everything if it returns false; nil: there is
// nothing before.
func Join(ex netloop.Executor, idle time.Duration, a End, first func() bool, b End) {
	t := &tunnel{ex: ex, idle: idle, base: ex.Now(), abort: func() {
		a.Raw.Abort()
		b.Raw.Abort()
	}}
	a.Raw.GuardReset(hurried{ex, b.Conn})
	b.Raw.GuardReset(hurried{ex, a.Conn})
	t.busy.Add(1)
	ended := ex.NewEvent()
	ex.Go(func() {
		defer ended.Set()
		sent := first == nil || first()
		t.moved()
		t.busy.Add(-1)
		if !sent {
			t.abort()
			return
		}
		t.forward(a, b)
	})
	t.forward(b, a)
	ended.Wait()
}

// hurried is a connection for which there is nothing more to come, since the other side was reset: it has a
// moment to take what is there.
type hurried struct {
	ex   netloop.Executor
	conn net.Conn
}

func (h hurried) Abort() { h.conn.SetWriteDeadline(h.ex.Now().Add(time.Second)) }

// tunnel is what its two directions share. What moves in either keeps both alive.
type tunnel struct {
	ex    netloop.Executor
	idle  time.Duration // 0: without limit
	abort func()        // ends both directions
	busy  atomic.Int32  // directions that wait for a peer to take bytes, and not for bytes
	base  time.Time
	last  atomic.Int64 // when something moved last, since base
}

// forward moves one direction and passes its end on. A failure ends both directions.
func (t *tunnel) forward(from, to End) {
	var out h1.Writer
	out.Reset(t.ex, to.Conn, t.idle)
	defer out.Release()
	from.Conn.SetReadDeadline(time.Time{})
	to.Conn.SetWriteDeadline(time.Time{})
	var body h1.Body
	body.Reset(from.In, h1.UntilClose, 0)
	for !body.Done() {
		err := t.take(&body, &out, from.Conn)
		if errors.Is(err, os.ErrDeadlineExceeded) && t.left() > 0 {
			body.Reset(from.In, h1.UntilClose, 0)
			continue
		}
		if err == nil {
			t.busy.Add(1)
			err = out.Flush()
			t.moved()
			t.busy.Add(-1)
		}
		if err != nil {
			t.abort()
			return
		}
	}
	if half, ok := to.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		t.abort()
	}
}

// take waits for bytes and takes in what has come.
func (t *tunnel) take(body *h1.Body, out *h1.Writer, from net.Conn) error {
	if t.idle > 0 {
		from.SetReadDeadline(t.ex.Now().Add(t.left()))
	}
	if err := body.Await(); err != nil {
		return err
	}
	free, err := out.Free()
	if err != nil {
		return err
	}
	n, err := body.Read(free)
	out.Written(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t.moved()
	if t.idle > 0 {
		from.SetWriteDeadline(t.ex.Now().Add(t.idle)) // the other direction has as long
	}
	return nil
}

func (t *tunnel) moved() { t.last.Store(int64(t.ex.Now().Sub(t.base))) }

// left is the time until the tunnel will have been idle for too long.
func (t *tunnel) left() time.Duration {
	if t.busy.Load() > 0 {
		return t.idle
	}
	return t.idle - (t.ex.Now().Sub(t.base) - time.Duration(t.last.Load()))
}
