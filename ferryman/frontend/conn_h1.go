package frontend

import (
	"errors"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// connH1 is one HTTP/1.1 client connection and, while it serves a request, that request's Frontend.
type connH1 struct {
	srv   *Server
	ex    netloop.Executor
	raw   netloop.Conn // the socket
	conn  net.Conn     // the socket, or TLS above it
	entry *entry
	in    h1.Reader

	sender
	body  h1.Body
	out   h1.Writer
	shut  bool // this exchange is the connection's last
	begun bool // something was read before: an HTTP/2 preface is not accepted any more
}

// serveH1 serves the requests of one connection, one after another, until either side ends it.
func (s *Server) serveH1(ex netloop.Executor, raw netloop.Conn, conn net.Conn, e *entry) {
	c := &connH1{srv: s, ex: ex, raw: raw, conn: conn, entry: e, sender: senderOf(raw, conn)}
	c.in.Reset(h1.Awaited(conn))
	c.serve()
}

func (c *connH1) serve() {
	c.srv.connections.during(c.entry, func() (goesOn bool) {
		if goesOn = c.loop(); !goesOn {
			c.in.Release()
			c.conn.Close()
		}
		return goesOn
	})
}

// resume serves a connection that comes from another executor, from where that one has left off.
func (c *connH1) resume(ex netloop.Executor, conn netloop.Conn) {
	c.ex, c.raw, c.conn = ex, conn, conn
	c.in.Follow(conn)
	c.entry = newEntry(conn)
	if !c.srv.connections.add(c.entry, 0) { // a drain has begun
		c.in.Release()
		conn.Close()
		return
	}
	c.serve()
}

// loop serves requests until the connection ends (false) or is handed over to HTTP/2 or another executor (true).
func (c *connH1) loop() (handedOver bool) {
	for c.awaitRequest() {
		e := c.srv.borrowExchange()
		c.req = &e.req
		err := c.readHead()
		another := false
		switch {
		case errors.Is(err, errPreface):
			c.srv.returnExchange(e)
			c.srv.resumeH2(c)
			return true
		case err != nil:
			c.refuseHead(err)
		case c.entry.begin(): // or else the drain was faster
			another = c.exchange(&e.Exchange)
		}
		c.srv.returnExchange(e)
		if !another {
			return false
		}
		c.begun = true
		c.entry.state.Store(connIdle)
		if c.srv.Draining() {
			return false
		}
		if to := c.ex.Rebalance(); to != nil {
			c.srv.connections.remove(c.entry)
			c.conn.(netloop.Conn).MoveTo(to, c.resume)
			return true
		}
	}
	return false
}

// exchange serves one request. It returns whether the connection can take another.
func (c *connH1) exchange(e *exchange.Exchange) bool {
	snap := c.srv.shared.Snapshot.Load()
	framing, length := c.req.Framing()
	c.body.Reset(&c.in, framing, length)
	c.out.Reset(c.ex, c.conn, snap.BodyIdleTimeout)
	c.shut = c.req.Close() || c.req.Old() || c.req.Upgrade
	if framing != h1.None {
		if c.conn.SetReadDeadline(time.Time{}); snap.BodyIdleTimeout > 0 {
			c.conn.SetReadDeadline(c.ex.Now().Add(snap.BodyIdleTimeout))
		}
	}
	e.Reset(c.srv.shared, c.ex, snap, c, c)
	e.Request = exchange.Request{
		Path: c.req.Path(), Idempotent: c.req.Idempotent(), Bodiless: framing == h1.None,
		Chunked: framing == h1.Chunked, Expect: c.req.Continue, Upgrade: c.req.Upgrade,
		Connect: c.req.Connect, Head: c.req.HeadMethod, Hops: c.req.Hops,
		LastHop: c.req.MaxForwards == 0,
	}
	e.Run()
	c.out.Release()
	if e.Complete() && !c.shut && c.body.Done() {
		return true
	}
	// Nothing but a reset tells HTTP/1.0 that its body was cut, and nothing else frees what the kernel
	// holds for a client that does not take it.
	if c.out.Stalled || !e.Complete() && c.req.Old() {
		c.raw.Reset()
		return false
	}
	asked := c.req.Close() && c.body.Done() && c.in.Buffered() == 0 && c.raw.Quiet()
	if !e.Tunnelling() && !asked && !c.Gone() {
		c.srv.linger(c.ex, &c.in, c.conn, lingerTime)
	}
	return false
}

// The request's body, with the limit on its pauses.

// Started, Whole and Done are those of the body.
func (c *connH1) Started() bool { return c.body.Started() }
func (c *connH1) Whole() bool   { return c.body.Whole() }
func (c *connH1) Done() bool    { return c.body.Done() }

func (c *connH1) Await() error {
	c.limitPause()
	return c.body.Await()
}

func (c *connH1) Read(p []byte) (int, error) {
	if !c.body.Started() {
		c.limitPause()
	}
	n, err := c.body.Read(p)
	if c.body.Done() {
		c.in.Trim()
	}
	return n, err
}

func (c *connH1) limitPause() {
	if d := c.srv.shared.Snapshot.Load().BodyIdleTimeout; d > 0 {
		c.conn.SetReadDeadline(c.ex.Now().Add(d))
	}
}

func (c *connH1) StopBody() { c.conn.SetReadDeadline(time.Unix(1, 0)) }

// Guard counts a FIN as leaving only after the request's body: before, it is a truncated body, which the reader of
// the body reports.
func (c *connH1) Guard(victim netloop.Aborter) {
	if victim == nil || c.body.Done() {
		c.raw.Guard(victim)
	} else {
		c.raw.GuardReset(victim)
	}
}

func (c *connH1) Gone() bool { return c.raw.Gone() }

// Hijack implements exchange.Frontend.
func (c *connH1) Hijack() (net.Conn, netloop.Conn, *h1.Reader) { return c.conn, c.raw, &c.in }

// exchangeH1 is an exchange with the request head that an HTTP/1.1 client needs beside it.
type exchangeH1 struct {
	exchange.Exchange
	req h1.Request
}

// borrowExchange and returnExchange keep exchanges for reuse, so that a request allocates nothing.
func (s *Server) borrowExchange() *exchangeH1 { return s.exchanges.Get().(*exchangeH1) }

// maxScratch is the largest head buffer that is worth keeping, in bytes.
const maxScratch = 8 << 10

func (s *Server) returnExchange(e *exchangeH1) {
	if cap(e.Head) > maxScratch {
		e.Head = nil
	}
	s.exchanges.Put(e)
}
