package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
)

// soakUpstream keeps no record of what it saw: a soak is long. It reads strictly and compares each whole
// request with what its client announced.
type soakUpstream struct {
	s    *soak
	addr string
	ln   net.Listener
	act  atomic.Pointer[soakAct]

	coroutines sync.WaitGroup
	mu         sync.Mutex // guards what follows
	conns      map[*net.TCPConn]struct{}
	mood       int // of one that flaps
	since      time.Time
	served     int // in this mood
}

// soakAct answers one request whose head was read. false: the connection is to be closed.
type soakAct func(c *soakConn, q *message) bool

type soakConn struct {
	u  *soakUpstream
	tc *net.TCPConn
	w  *wireReader
}

func newSoakUpstream(s *soak, act soakAct) *soakUpstream {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(s.t, err)
	u := &soakUpstream{s: s, addr: ln.Addr().String(), ln: ln, conns: map[*net.TCPConn]struct{}{}}
	u.act.Store(&act)
	u.coroutines.Go(u.accept)
	return u
}

func (u *soakUpstream) accept() {
	for {
		nc, err := u.ln.Accept()
		if err != nil {
			return
		}
		c := &soakConn{u: u, tc: nc.(*net.TCPConn)}
		c.w = newWireReader(c.tc)
		u.mu.Lock()
		u.conns[c.tc] = struct{}{}
		u.mu.Unlock()
		u.coroutines.Go(c.serve)
	}
}

// open counts the connections.
func (u *soakUpstream) open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}

func (u *soakUpstream) close() {
	u.ln.Close()
	u.mu.Lock()
	for c := range u.conns {
		c.Close()
	}
	u.mu.Unlock()
	u.coroutines.Wait()
}

func (c *soakConn) serve() {
	defer func() {
		c.tc.Close()
		c.u.mu.Lock()
		defer c.u.mu.Unlock()
		delete(c.u.conns, c.tc)
	}()
	for {
		q, err := c.w.requestHead()
		if err != nil {
			c.broken(err)
			return
		}
		if act := *c.u.act.Load(); q.target == "/health" && !q.has("Via") {
			c.health()
			return
		} else if forwarded(c.u.s.t, q); !act(c, q) {
			return
		}
	}
}

// health is what the checks get: they, too, see the mood.
func (c *soakConn) health() {
	switch m := c.u.temper(); m {
	case moodUnavailable:
		c.send("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
	case moodReset:
		c.reset()
	default:
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

func (c *soakConn) broken(err error) {
	if errors.Is(err, errSyntax) {
		c.u.s.fail("an upstream got what is no request: %v", err)
	}
}

func (c *soakConn) send(s string) bool {
	_, err := c.tc.Write([]byte(s))
	return err == nil
}

func (c *soakConn) reset() bool {
	_ = c.tc.SetLinger(0)
	return false
}

// body reads the request's body. A whole one must be what the client announced.
func (c *soakConn) body(q *message) bool {
	if err := c.w.readBody(q); err != nil {
		c.broken(err)
		return false
	}
	n, _ := strconv.Atoi(q.get("X-Length"))
	if string(q.body) != pattern(q.get("X-Nonce"), n) {
		c.u.s.fail("an upstream got a whole request that is not its client's: %q %q, %d of %d bytes", q.line, q.lines(), q.bodyLen, n)
	}
	return true
}

// answer is the head of an answer up to its framing.
func soakHead(status int, q *message, more string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nX-U: u\r\nX-Nonce: %s\r\n%s", status, q.get("X-Nonce"), more)
}

// wanted is the body that the client asked for.
func wanted(q *message) string {
	n, _ := strconv.Atoi(q.get("X-Want"))
	return pattern(q.get("X-Nonce"), n)
}

// soakWell answers properly, in one of the framings that there are.
func soakWell(c *soakConn, q *message) bool { return c.body(q) && c.well(q) }

func (c *soakConn) well(q *message) bool {
	b := wanted(q)
	switch n := rand.IntN(12); {
	case q.method == "HEAD":
		return c.send(soakHead(200, q, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(b))))
	case b == "" && n < 6:
		return c.send(soakHead(204, q, "\r\n"))
	case n == 0:
		c.send(soakHead(200, q, "Connection: close\r\n\r\n") + b)
		return false
	case n < 5:
		return c.send(soakHead(200, q, "Transfer-Encoding: chunked\r\n\r\n") + inChunks(b) + "0\r\n\r\n")
	case n == 5:
		return c.send(earlyHints+soakHead(200, q, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(b)))) && c.send(b)
	default:
		return c.send(soakHead(200, q, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(b))) + b)
	}
}

// inChunks cuts b into chunks at random, without the last one.
func inChunks(b string) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(len(b), 1+rand.IntN(max(1, min(len(b), 20_000))))
		fmt.Fprintf(&s, "%x\r\n%s\r\n", n, b[:n])
		b = b[n:]
	}
	return s.String()
}

// soakMute never answers, and notices when the proxy gives up.
func soakMute(c *soakConn, q *message) bool {
	if c.body(q) {
		_, _ = c.w.br.Peek(1)
	}
	return false
}
