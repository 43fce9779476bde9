package ferryman

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// tunnel joins client and upstream after a 101 (RFC 9110 section 7.8): bytes flow both ways until
// both sides have ended theirs or one has failed.
func (e *exchange) tunnel() {
	e.tunnelling = true
	e.client.guard(nil)
	e.up.SetDeadline(time.Time{})
	if e.client.begin(e) != nil || e.client.flush() != nil {
		e.abandon()
		return
	}
	e.client.tunnel(e)
	e.drop()
}

// tunnel carries the bytes of both directions, each on a strand.
func (c *clientH1) tunnel(e *exchange) {
	c.conn.SetDeadline(time.Time{})
	both := func() {
		c.raw.Abort()
		e.up.Abort()
	}
	up := outlet{ex: c.ex, conn: e.up}
	ended := c.ex.NewGate()
	c.ex.Go(func() {
		defer ended.Open()
		join(&c.in, &up, e.up, both)
	})
	down := outlet{ex: c.ex, conn: c.conn}
	join(&e.up.In, &down, c.conn, both)
	ended.Wait()
}

// join moves one direction and passes its end on. A failure ends both directions.
func join(in *h1.Reader, out *outlet, to net.Conn, abort func()) {
	defer out.release()
	var body h1.Body
	body.Reset(in, h1.UntilClose, 0)
	for !body.Done() {
		if err := move(&body, out); err != nil {
			abort()
			return
		}
	}
	half, ok := to.(interface{ CloseWrite() error })
	if out.flush() != nil || !ok || half.CloseWrite() != nil {
		abort()
	}
}

// move takes one read of a body into an outlet, and sends what waits before it blocks.
func move(body *h1.Body, out *outlet) error {
	if !body.Started() {
		if err := out.flush(); err != nil {
			return err
		}
		if err := body.Await(); err != nil {
			return err
		}
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
	return nil
}
