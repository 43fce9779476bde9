package ferryman

import (
	"errors"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// clientH1 is one HTTP/1.1 client connection and, while it serves a request, that request's front.
type clientH1 struct {
	p     *Proxy
	ex    netloop.Executor
	raw   netloop.Conn // the socket
	conn  net.Conn     // the socket, or TLS above it
	entry *client
	in    h1.Reader

	origin
	body  h1.Body
	out   outlet
	shut  bool // this exchange is the connection's last
	begun bool // something was read before: what comes is no preface
}

// serveH1 serves the requests of one connection, one after another, until either side ends it.
func (p *Proxy) serveH1(ex netloop.Executor, raw netloop.Conn, conn net.Conn, entry *client) {
	c := &clientH1{p: p, ex: ex, raw: raw, conn: conn, entry: entry, origin: originOf(raw, conn)}
	c.in.Reset(awaiter(conn))
	c.serve()
}

func (c *clientH1) serve() {
	c.p.clients.during(c.entry, func() (goesOn bool) {
		if goesOn = c.loop(); !goesOn {
			c.in.Release()
			c.conn.Close()
		}
		return goesOn
	})
}

// goOn serves a connection that comes from another executor, from where that one has left off.
func (c *clientH1) goOn(ex netloop.Executor, conn netloop.Conn) {
	c.ex, c.raw, c.conn = ex, conn, conn
	c.in.Follow(conn)
	c.entry = newClient(conn)
	if !c.p.clients.add(c.entry, 0) { // a drain has begun
		c.in.Release()
		conn.Close()
		return
	}
	c.serve()
}

// awaiter is a connection as the codec reads it. A tls.Conn cannot tell what is readable.
func awaiter(conn net.Conn) h1.Source {
	if s, ok := conn.(h1.Source); ok {
		return s
	}
	return unawaited{conn}
}

type unawaited struct{ net.Conn }

func (unawaited) Await() error { return nil }

// loop returns true where the connection went on as HTTP/2, which may have ended, or on another executor.
func (c *clientH1) loop() (handedOver bool) {
	for c.awaitRequest() {
		e := c.p.borrow()
		c.req = &e.req
		err := c.readHead()
		goOn := false
		switch {
		case errors.Is(err, errPreface):
			c.p.giveBack(e)
			c.p.goOnH2(c)
			return true
		case err != nil:
			c.refuseHead(err)
		case c.entry.begin(): // or else the drain was faster
			goOn = c.exchange(&e.exchange)
		}
		c.p.giveBack(e)
		if !goOn {
			return false
		}
		c.begun = true
		c.entry.state.Store(clientIdle)
		if c.p.clients.draining.Load() {
			return false
		}
		if to := c.ex.Rebalance(); to != nil {
			c.p.clients.remove(c.entry)
			c.conn.(netloop.Conn).MoveTo(to, c.goOn)
			return true
		}
	}
	return false
}

// exchange serves one request. It returns whether the connection can take another.
func (c *clientH1) exchange(e *exchange) bool {
	snap := c.p.snapshot.Load()
	framing, length := c.req.Framing()
	c.body.Reset(&c.in, framing, length)
	c.out.reset(c.ex, c.conn, snap.config.BodyIdleTimeout)
	c.shut = c.req.Close() || c.req.Old() || c.req.Upgrade
	if framing != h1.None {
		c.conn.SetReadDeadline(deadline(c.ex, snap.config.BodyIdleTimeout))
	}
	e.prepare(c.p, c.ex, snap, c, c)
	e.ask = ask{
		path: c.req.Path(), idempotent: c.req.Idempotent(), bodiless: framing == h1.None,
		chunked: framing == h1.Chunked, expect: c.req.Continue, upgrade: c.req.Upgrade,
		connect: c.req.Connect, head: c.req.HeadMethod, hops: c.req.Hops,
		lastHop: c.req.MaxForwards == 0,
	}
	e.run()
	c.out.release()
	if e.complete && !c.shut && c.body.Done() {
		return true
	}
	// Nothing but a reset tells HTTP/1.0 that its body was cut, and nothing else frees what the kernel
	// holds for a client that does not take it.
	if c.out.stalled || !e.complete && c.req.Old() {
		c.raw.Reset()
		return false
	}
	asked := c.req.Close() && c.body.Done() && c.in.Buffered() == 0 && c.raw.Quiet()
	if !e.tunnelling && !asked && !c.gone() {
		c.p.linger(c.ex, &c.in, c.conn, lingerTime)
	}
	return false
}

// deadline is a moment after d, or none where d is 0.
func deadline(ex netloop.Executor, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return ex.Now().Add(d)
}

// The request's body, with the limit on its pauses.

// Started, Whole and Done are those of the body.
func (c *clientH1) Started() bool { return c.body.Started() }
func (c *clientH1) Whole() bool   { return c.body.Whole() }
func (c *clientH1) Done() bool    { return c.body.Done() }

func (c *clientH1) Await() error {
	c.limitPause()
	return c.body.Await()
}

func (c *clientH1) Read(p []byte) (int, error) {
	if !c.body.Started() {
		c.limitPause()
	}
	n, err := c.body.Read(p)
	if c.body.Done() {
		c.in.Trim()
	}
	return n, err
}

func (c *clientH1) limitPause() {
	if d := c.p.snapshot.Load().config.BodyIdleTimeout; d > 0 {
		c.conn.SetReadDeadline(c.ex.Now().Add(d))
	}
}

func (c *clientH1) stopBody() { c.conn.SetReadDeadline(time.Unix(1, 0)) }

// guard takes the end of the client's side for a departure only behind its body: within, it is a body cut
// short, which is for whoever reads it to notice.
func (c *clientH1) guard(victim netloop.Aborter) {
	if victim == nil || c.body.Done() {
		c.raw.Guard(victim)
	} else {
		c.raw.GuardReset(victim)
	}
}

func (c *clientH1) gone() bool { return c.raw.Gone() }
