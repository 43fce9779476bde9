package conformance

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// handler answers one request whose head was read. It reads the body itself if it wants it. False
// ends the script: the connection is drained, every byte recorded, until the proxy closes it.
type handler func(c *uconn, q *message) bool

// upstream listens, records every byte of every connection and plays scripts. Health checks are
// recognised and set apart.
type upstream struct {
	name, addr string
	ln         net.Listener
	recordMax  int

	mu         sync.Mutex
	conns      []*uconn
	queue      []handler // one for each coming request
	always     handler   // when the queue is empty
	health     func(c *uconn, q *message)
	heads      []*message // of proxied requests, complete or not
	whole      []*message
	checks     []*message
	coroutines sync.WaitGroup
}

// uconn is one connection of an upstream, used by its script only; the exceptions are guarded.
type uconn struct {
	u     *upstream
	id    int
	conn  *net.TCPConn
	w     *wireReader
	index int // of the request that is being served

	mu    sync.Mutex
	log   []byte
	off   bool // recording stopped: too long, or no longer HTTP
	check bool // carried health checks only
	ended chan struct{}
	err   error // how reading ended
	once  sync.Once
}

func newUpstream(t testing.TB, name string) *upstream {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	u := &upstream{name: name, addr: ln.Addr().String(), ln: ln, recordMax: 4 << 20, always: echo}
	u.coroutines.Add(1)
	go u.accept(ln)
	return u
}

func (u *upstream) accept(ln net.Listener) {
	defer u.coroutines.Done()
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		c := &uconn{u: u, conn: nc.(*net.TCPConn), ended: make(chan struct{})}
		c.w = newWireReader(readerFunc(c.read))
		u.mu.Lock()
		c.id = len(u.conns)
		u.conns = append(u.conns, c)
		u.mu.Unlock()
		u.coroutines.Add(1)
		go c.serve()
	}
}

func (c *uconn) read(p []byte) (int, error) {
	n, err := c.conn.Read(p)
	c.mu.Lock()
	if !c.off && len(c.log)+n > c.u.recordMax {
		c.off = true
	}
	if !c.off {
		c.log = append(c.log, p[:n]...)
	}
	c.mu.Unlock()
	if err != nil {
		c.end(err)
	}
	return n, err
}

func (c *uconn) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.ended)
	})
}

func (c *uconn) serve() {
	defer c.u.coroutines.Done()
	defer c.conn.Close()
	for ; ; c.index++ {
		q, err := c.w.requestHead()
		if err != nil {
			c.drain()
			return
		}
		q.conn, q.index, q.up = c.id, c.index, c.u.name
		h := c.u.next(c, q)
		if h == nil {
			return
		}
		if !h(c, q) {
			c.drain()
			return
		}
	}
}

// next notes a head and picks who answers it.
func (u *upstream) next(c *uconn, q *message) handler {
	u.mu.Lock()
	defer u.mu.Unlock()
	if q.target == "/health" && strings.HasPrefix(q.get("User-Agent"), "ferryman/") && !q.has("Via") {
		u.checks = append(u.checks, q)
		c.mu.Lock()
		c.check = true
		c.mu.Unlock()
		if h := u.health; h != nil {
			return func(c *uconn, q *message) bool { h(c, q); return false }
		}
		return func(c *uconn, q *message) bool {
			c.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			return false
		}
	}
	u.heads = append(u.heads, q)
	if len(u.queue) > 0 {
		h := u.queue[0]
		u.queue = u.queue[1:]
		return h
	}
	return u.always
}

// drain records what still comes until the proxy closes.
func (c *uconn) drain() {
	_, err := io.Copy(io.Discard, c.w.br)
	if err == nil {
		err = io.EOF
	}
	c.end(err)
}

func (c *uconn) send(parts ...string) bool {
	for _, p := range parts {
		if _, err := io.WriteString(c.conn, p); err != nil {
			return false
		}
	}
	return true
}

// body reads the rest of the request and counts it as whole.
func (c *uconn) body(q *message) bool {
	if err := c.w.readBody(q); err != nil {
		return false
	}
	c.u.mu.Lock()
	c.u.whole = append(c.u.whole, q)
	c.u.mu.Unlock()
	return true
}

func (c *uconn) close() { c.end(net.ErrClosed); _ = c.conn.Close() }
func (c *uconn) fin()   { _ = c.conn.CloseWrite() }
func (c *uconn) reset() { _ = c.conn.SetLinger(0); c.close() }

// unrecorded ends recording: what follows is not HTTP, or is too much.
func (c *uconn) unrecorded() {
	c.mu.Lock()
	c.off = true
	c.mu.Unlock()
}

// echoed is the document that echo answers with. Fields are bytes, for they need not be UTF-8.
type echoed struct {
	Upstream string
	Line     []byte
	Fields   [][]byte
	Length   int64
	SHA256   string
	Trailers [][]byte
	Conn     int
	Index    int
}

// echo reads a request strictly and describes it.
func echo(c *uconn, q *message) bool {
	if !c.body(q) {
		return false
	}
	return c.send(describe(q))
}

func describe(q *message) string {
	e := echoed{Upstream: q.up, Line: []byte(q.line), Length: q.bodyLen, SHA256: hex.EncodeToString(q.sum[:]),
		Conn: q.conn, Index: q.index}
	for _, f := range q.fields {
		e.Fields = append(e.Fields, []byte(f.line))
	}
	for _, f := range q.trailers {
		e.Trailers = append(e.Trailers, []byte(f.line))
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	body := string(b)
	if q.method == "HEAD" {
		body = ""
	}
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: %s\r\nX-Nonce: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		q.up, q.get("X-Nonce"), len(b), body)
}

// reply reads the request, sends raw bytes and goes on.
func reply(raw ...string) handler {
	return func(c *uconn, q *message) bool { return c.body(q) && c.send(raw...) }
}

// replyThenHold sends raw bytes and leaves the end of the connection to the proxy.
func replyThenHold(raw ...string) handler {
	return func(c *uconn, q *message) bool { c.body(q); c.send(raw...); return false }
}

// replyThenClose sends raw bytes and FIN.
func replyThenClose(raw ...string) handler {
	return func(c *uconn, q *message) bool { c.body(q); c.send(raw...); c.fin(); return false }
}

// replyThenReset sends raw bytes and RST once they were delivered.
func replyThenReset(raw ...string) handler {
	return func(c *uconn, q *message) bool {
		c.body(q)
		c.send(raw...)
		pause(quiet) // an RST overtakes bytes that were not read yet
		c.reset()
		return false
	}
}

// hang reads the request and never answers.
func hang(c *uconn, q *message) bool { c.body(q); return false }

// ok is an answer of length bytes.
func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// play queues one handler for each of the next requests.
func (u *upstream) play(hs ...handler) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue = append(u.queue, hs...)
}

// unplayed is how many queued handlers were not used.
func (u *upstream) unplayed() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.queue)
}

func (u *upstream) playAlways(h handler) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.always = h
}

func (u *upstream) onHealth(f func(c *uconn, q *message)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.health = f
}

// started are the requests whose head arrived, requests those that arrived whole.
func (u *upstream) started() []*message {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.heads)
}

func (u *upstream) requests() []*message {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.whole)
}

func (u *upstream) checked() []*message {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.checks)
}

func (u *upstream) connections() []*uconn {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.conns)
}

// awaitStarted waits until n heads have arrived and returns the last.
func (u *upstream) awaitStarted(t testing.TB, n int) *message {
	t.Helper()
	eventually(t, func() bool { return len(u.started()) >= n }, "%s: head %d does not arrive", u.name, n)
	return u.started()[n-1]
}

// withNonce is the request that arrived whole with this nonce.
func (u *upstream) withNonce(t testing.TB, n string) *message {
	t.Helper()
	for _, q := range u.requests() {
		if q.get("X-Nonce") == n {
			return q
		}
	}
	require.Failf(t, "no such request", "%s has not seen %s", u.name, n)
	return nil
}

// last is the request that arrived whole last.
func (u *upstream) last(t testing.TB) *message {
	t.Helper()
	q := u.requests()
	require.NotEmpty(t, q, "%s has seen no request", u.name)
	return q[len(q)-1]
}

// gone waits until the proxy has closed connection id.
func (u *upstream) gone(t testing.TB, id int) {
	t.Helper()
	u.goneWithin(t, id, patience)
}

func (u *upstream) goneWithin(t testing.TB, id int, d time.Duration) {
	t.Helper()
	cs := u.connections()
	require.Less(t, id, len(cs))
	select {
	case <-cs[id].ended:
	case <-time.After(d):
		require.Failf(t, "upstream connection left open", "%s connection %d", u.name, id)
	}
}

func (u *upstream) close() { u.end() }

// end is close. It returns false if a script does not end, as one does that waits for a test which has failed.
func (u *upstream) end() bool {
	_ = u.ln.Close()
	for _, c := range u.connections() {
		_ = c.conn.Close()
	}
	ended := make(chan struct{})
	go func() {
		u.coroutines.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// closedPort is an address that refuses: bound, so that nobody else gets it, but not listening.
func closedPort(t testing.TB) string {
	t.Helper()
	return boundSocket(t, func(int) error { return nil })
}

// blackhole is an address that drops SYN: a listener whose queue is full.
func blackhole(t testing.TB) string {
	t.Helper()
	addr := boundSocket(t, func(fd int) error { return syscall.Listen(fd, 0) })
	c, err := net.DialTimeout("tcp4", addr, patience)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return addr
}

func boundSocket(t testing.TB, then func(fd int) error) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, then(fd))
	sa, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	in, isV4 := sa.(*syscall.SockaddrInet4)
	require.True(t, isV4)
	return fmt.Sprintf("127.0.0.1:%d", in.Port)
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
