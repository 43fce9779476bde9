package ferryman

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

// tunnel joins client and upstream after a 101 (RFC 9110 section 7.8): bytes flow both ways until
// both sides have ended theirs, one has failed, or none has sent anything for BodyIdleTimeout.
func (e *exchange) tunnel() {
	e.mu.Lock()
	e.tunnelling = true
	e.mu.Unlock()
	e.client.guard(nil)
	if e.client.begin(e) != nil || e.client.flush() != nil {
		e.abandon()
		return
	}
	e.client.tunnel(e)
	e.drop()
}

// tunnel carries the bytes of both directions, each on a coroutine. What the client sends follows the body of
// its request, which may still be on its way.
func (c *clientH1) tunnel(e *exchange) {
	t := &tunnel{ex: c.ex, idle: e.snap.config.BodyIdleTimeout, base: c.ex.Now(), abort: func() {
		c.raw.Abort()
		e.up.Abort()
	}}
	c.raw.GuardReset(hurried{c.ex, e.up})
	e.up.GuardReset(hurried{c.ex, c.conn})
	t.busy.Add(1)
	ended := c.ex.NewEvent()
	c.ex.Go(func() {
		defer ended.Set()
		sent := e.uploaded()
		t.came()
		t.busy.Add(-1)
		if !sent {
			t.abort()
			return
		}
		t.join(&c.in, c.conn, e.up)
	})
	t.join(&e.up.In, e.up, c.conn)
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

// join moves one direction and passes its end on. A failure ends both directions.
func (t *tunnel) join(in *h1.Reader, from, to net.Conn) {
	out := outlet{ex: t.ex, conn: to, stall: t.idle}
	defer out.release()
	from.SetReadDeadline(time.Time{})
	to.SetWriteDeadline(time.Time{})
	var body h1.Body
	body.Reset(in, h1.UntilClose, 0)
	for !body.Done() {
		err := t.take(&body, &out, from)
		if errors.Is(err, os.ErrDeadlineExceeded) && t.left() > 0 {
			body.Reset(in, h1.UntilClose, 0)
			continue
		}
		if err == nil {
			t.busy.Add(1)
			err = out.flush()
			t.came()
			t.busy.Add(-1)
		}
		if err != nil {
			t.abort()
			return
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		t.abort()
	}
}

// take waits for bytes and takes in what has come.
func (t *tunnel) take(body *h1.Body, out *outlet, from net.Conn) error {
	if t.idle > 0 {
		from.SetReadDeadline(t.ex.Now().Add(t.left()))
	}
	if err := body.Await(); err != nil {
		return err
	}
	room, err := out.room()
	if err != nil {
		return err
	}
	n, err := body.Read(room)
	out.commit(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t.came()
	if t.idle > 0 {
		from.SetWriteDeadline(t.ex.Now().Add(t.idle)) // the other direction has as long
	}
	return nil
}

func (t *tunnel) came() { t.last.Store(int64(t.ex.Now().Sub(t.base))) }

// left is the time until the tunnel will have been idle for too long.
func (t *tunnel) left() time.Duration {
	if t.busy.Load() > 0 {
		return t.idle
	}
	return t.idle - (t.ex.Now().Sub(t.base) - time.Duration(t.last.Load()))
}
