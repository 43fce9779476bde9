package frontend

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// connH2 is one HTTP/2 client connection (RFC 9113). One coroutine reads its frames, which
// golang.org/x/net/http2 parses; every stream is an exchange on a coroutine of its own, on the same executor.
// What there is to send is appended under the lock and sent by whoever comes first, for all. The reader
// itself never sends, so that it notices a client that goes away even while that one reads nothing.
type connH2 struct {
	srv   *Server
	ex    netloop.Executor
	raw   netloop.Conn // the socket
	conn  net.Conn     // the socket, or TLS above it
	from  sender       // without a request
	entry *entry

	// What follows belongs to the reader.
	in      h1.Reader
	frames  *h2.Framer // nil while nothing of a frame is there
	blocks  *h2.Decoder
	opening headH2 // whose header block is read
	begun   bool   // a byte of the current frame has come
	payload bool   // the current frame is DATA
	strict  bool   // the read deadline is HeadTimeout, not the idle time-out
	gap     bool   // the client has left stream numbers out

	mu      sync.Mutex // guards what follows, and what the streams say it does
	streams map[uint32]*streamH2
	startsH2
	running   int       // coroutines of streams
	alone     condQueue // woken when running is 0
	open      int       // streams that count against the limit
	last      uint32    // the highest stream that the client has opened
	idle      time.Time // since when there is no stream
	leaving   bool      // the first GOAWAY is out
	finalSent bool      // the last GOAWAY is out: no new stream is served
	transferH2
	over   bool      // the reader is to end
	recent h2.Recent // streams that ferryman has ended although the client had not
	abuseH2
	uploadsH2
	outgoing
}

const (
	maxStreams = 250
	directRead = 4 << 10 // reads of this size go past the buffer
)

func newConnH2(srv *Server, ex netloop.Executor, raw netloop.Conn, conn net.Conn) *connH2 {
	c := &connH2{srv: srv, ex: ex, raw: raw, conn: conn, from: senderOf(raw, conn), blocks: h2.NewDecoder(),
		streams: make(map[uint32]*streamH2), idle: ex.Now()}
	c.send, c.startMore = c.flush, c.resumeStarting
	c.window, c.initial = defaultWindow, defaultWindow
	c.received.left, c.growth, c.forgiven = connWindow, maxGrowth, ex.Now()
	c.in.Reset(h1.Awaited(conn))
	return c
}

// serveH2 serves a connection whose client chose HTTP/2 in the TLS handshake.
func (s *Server) serveH2(ex netloop.Executor, raw netloop.Conn, conn net.Conn, e *entry) {
	newConnH2(s, ex, raw, conn).serveAs(e)
}

// resumeH2 serves a plaintext connection on which an HTTP/2 preface has come.
func (s *Server) resumeH2(h *connH1) {
	c := newConnH2(s, h.ex, h.raw, h.conn)
	c.in, h.in = h.in, h1.Reader{}
	c.serveAs(h.entry)
}

// serveAs serves the connection that entry stands for.
func (c *connH2) serveAs(e *entry) {
	c.entry = e
	c.srv.connections.drainBy(e, c.drainSoon)
	c.serve(c.begin)
}

// serve reads the connection to its end, or until it goes on elsewhere.
func (c *connH2) serve(read func() error) {
	c.srv.connections.during(c.entry, func() (goesOn bool) {
		err := read()
		if err == errMoves {
			c.moveOn()
			return true
		}
		c.close(err)
		return false
	})
}

// begin exchanges prefaces and reads what follows.
func (c *connH2) begin() error {
	c.conn.SetReadDeadline(c.ex.Now().Add(c.idleTimeout()))
	c.greet()
	var preface [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(c, preface[:]); err != nil {
		return err
	}
	if string(preface[:]) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if err := c.frame(true); err != nil {
		return err
	}
	return c.read()
}

// read takes frames until the connection is at its end, and returns why.
func (c *connH2) read() error {
	for {
		c.begun, c.payload = c.blocks.Gathering(), false
		if err := c.frame(false); err != nil {
			return err
		}
		if n := c.blocks.Decoded(); n > 0 {
			c.ex.Spend(n) // a few bytes may be a large head
		}
	}
}

// Read is where the frames' bytes come from.
func (c *connH2) Read(p []byte) (int, error) {
	if c.in.Buffered() == 0 {
		if n, err := c.await(p); n > 0 || err != nil {
			return n, err
		}
	}
	n := copy(p, c.in.Peek())
	c.in.Discard(n)
	c.begun = true
	return n, nil
}

// await waits until something is buffered or, if p is large, has come into p. It ends what trickles and
// what is idle.
func (c *connH2) await(p []byte) (n int, err error) {
	for {
		if moves := c.beforeWait(); moves {
			return 0, errMoves
		}
		c.arm()
		if len(p) >= directRead {
			n, err = c.conn.Read(p)
		} else {
			err = c.in.Fill()
		}
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.patient() {
			return n, err
		}
	}
}

// beforeWait does, before the reader waits, what its frames so far have caused. It reports whether the
// connection is to go on elsewhere.
func (c *connH2) beforeWait() (moves bool) {
	c.waitForUploads()
	c.mu.Lock()
	c.startSome()
	c.scheduleFlush()
	full := c.due && len(c.pending) > maxWaiting // of answers to what the client has sent in one go
	moves = c.mayMove() && !c.begun
	c.mu.Unlock()
	if full { // whoever is to send gets a turn
		g := c.ex.NewEvent()
		c.ex.Defer(g.Set)
		g.Wait()
	}
	return moves
}

// arm sets the read deadline. A frame that has begun, and the CONTINUATIONs that it needs, must be
// there after headLimit, however they trickle. DATA may take longer: that is for the streams to judge.
func (c *connH2) arm() {
	if strict := c.begun && !c.payload; c.strict == strict {
		return
	}
	c.strict = !c.strict
	d := c.idleTimeout()
	if c.strict {
		d = c.srv.HeadTimeout
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.conn.SetReadDeadline(c.ex.Now().Add(d))
	}
}

func (c *connH2) idleTimeout() time.Duration { return c.srv.shared.Snapshot.Load().ClientIdleTimeout }

// patient reports whether the connection is not really idle after its read deadline, and extends it:
// cheaper than setting it with each request.
func (c *connH2) patient() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, rest := c.ex.Now(), c.idleTimeout()
	if len(c.streams) == 0 {
		rest -= now.Sub(c.idle)
	}
	if c.over || c.strict || rest <= 0 {
		return false
	}
	c.conn.SetReadDeadline(now.Add(rest))
	return true
}
