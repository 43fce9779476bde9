package conformance

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// client is one raw client connection. It writes exact bytes and keeps what it wrote and read.
// It belongs to one goroutine, except that one may write while another reads.
type client struct {
	r    *rig
	t    testing.TB
	conn net.Conn
	tcp  *net.TCPConn
	w    *wireReader

	mu        sync.Mutex
	sent, got []byte // the first megabytes
	own       []*message
	writeErr  error
	bytesSent atomic.Int64
	closed    bool
}

const captureMax = 2 << 20

func (r *rig) dial(t testing.TB) *client {
	t.Helper()
	return r.dialWith(t, clientTLS, 0)
}

// dialWith connects with a TLS configuration of the case's own and, if rcvbuf is not 0, a receive
// buffer of that size.
func (r *rig) dialWith(t testing.TB, conf *tls.Config, rcvbuf int) *client {
	t.Helper()
	c, err := r.tryDial(conf, rcvbuf)
	for n := 0; err != nil && r.hasty && n < 10; n++ { // a busy machine may have held the handshake up
		c, err = r.tryDial(conf, rcvbuf)
	}
	require.NoError(t, err)
	c.t = t
	return c
}

func (r *rig) tryDial(conf *tls.Config, rcvbuf int) (*client, error) {
	d := net.Dialer{Timeout: patience}
	d.SetMultipathTCP(false)
	if rcvbuf > 0 {
		d.Control = func(_, _ string, rc syscall.RawConn) error {
			var err error
			if e := rc.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, rcvbuf)
			}); e != nil {
				return e
			}
			return err
		}
	}
	nc, err := d.Dial("tcp", r.addr)
	if err != nil {
		return nil, err
	}
	c := &client{r: r, t: r.t, conn: nc, tcp: nc.(*net.TCPConn)}
	if r.mode.tls {
		tc := tls.Client(nc, conf)
		_ = nc.SetDeadline(time.Now().Add(patience))
		if err = tc.Handshake(); err != nil {
			nc.Close()
			return nil, err
		}
		_ = nc.SetDeadline(time.Time{})
		c.conn = tc
	}
	c.w = newWireReader(readerFunc(c.read))
	r.mu.Lock()
	r.clients = append(r.clients, c)
	r.mu.Unlock()
	return c, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// read is what everything that is received passes through.
func (c *client) read(p []byte) (int, error) {
	n, err := c.conn.Read(p)
	c.mu.Lock()
	if len(c.got) < captureMax {
		c.got = append(c.got, p[:n]...)
	}
	c.mu.Unlock()
	return n, err
}

// send writes each part in a segment of its own. A refusing proxy may stop reading at any time, so
// errors are kept, not fatal.
func (c *client) send(parts ...string) {
	for _, p := range parts {
		if len(c.sent) < captureMax {
			c.mu.Lock()
			c.sent = append(c.sent, p...)
			c.mu.Unlock()
		}
		_ = c.conn.SetWriteDeadline(time.Now().Add(2 * patience))
		n, err := io.WriteString(c.conn, p)
		c.bytesSent.Add(int64(n))
		if err != nil {
			c.writeErr = err
			return
		}
	}
}

// sendAside is send for more bytes than the proxy may want to read. wait joins it.
func (c *client) sendAside(parts ...string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.send(parts...)
	}()
	return func() { <-done }
}

// trickle sends one byte for each segment.
func (c *client) trickle(gap time.Duration, s string) {
	for i := range len(s) {
		c.send(s[i : i+1])
		if c.writeErr != nil {
			return
		}
		pause(gap)
	}
}

// response reads one final response to a request of the given method.
func (c *client) response(method string) (*message, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	m, err := c.w.response(method)
	c.keep(m, err)
	return m, err
}

func (c *client) keep(m *message, err error) {
	if m == nil || err != nil {
		return
	}
	c.r.finals.Add(1)
	if m.status >= 400 && !m.has("X-U") {
		c.mu.Lock()
		c.own = append(c.own, m)
		c.mu.Unlock()
	}
}

// must is response for cases in which nothing else is acceptable.
func (c *client) must(t testing.TB, method string) *message {
	t.Helper()
	m, err := c.response(method)
	require.NoError(t, err, "response to %s", method)
	return m
}

// want reads a response and insists on its status.
func (c *client) want(t testing.TB, method string, status int) *message {
	t.Helper()
	m := c.must(t, method)
	require.Equal(t, status, m.status, "body %q", m.body)
	return m
}

// do sends a request and reads its response.
func (c *client) do(t testing.TB, q request) *message {
	t.Helper()
	c.send(q.String())
	return c.must(t, q.method())
}

// end reads until the connection ends and returns what came and how it ended: nil for FIN.
func (c *client) end() ([]byte, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c.w.br)
	return b, err
}

// closedByPeer insists on an orderly end without another byte.
func (c *client) closedByPeer(t testing.TB) {
	t.Helper()
	b, err := c.end()
	require.NoError(t, err, "the connection must end with FIN")
	require.Empty(t, string(b), "nothing may follow")
}

// still insists that nothing comes for a moment and that the connection stays open.
func (c *client) still(t testing.TB) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(quiet))
	b, err := c.w.br.Peek(1)
	var ne net.Error
	require.True(t, errors.As(err, &ne) && ne.Timeout(), "expected silence, got %q, %v", b, err)
}

// fin ends the sending side only.
func (c *client) fin() {
	if tc, ok := c.conn.(*tls.Conn); ok {
		_ = tc.CloseWrite()
	}
	_ = c.tcp.CloseWrite()
}

func (c *client) rst() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
	c.closed = true
}

func (c *client) close() {
	_ = c.conn.Close()
	c.closed = true
}

var nonces atomic.Int64

// nonce is unique in the process.
func nonce() string { return "n" + strconv.FormatInt(nonces.Add(1), 10) + "." }

// request builds a well-formed request; zero values are GET / HTTP/1.1 with Host: a and a nonce.
type request struct {
	m, path, proto string
	fields         []string // lines without their end
	body           string   // sent with a Content-Length
	chunks         []string // sent chunked
	nonce          string
	noHost         bool
}

func (q request) method() string {
	if q.m == "" {
		return "GET"
	}
	return q.m
}

func (q request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\n", q.method(), or(q.path, "/"), or(q.proto, "HTTP/1.1"))
	if !q.noHost {
		b.WriteString("Host: a\r\n")
	}
	fmt.Fprintf(&b, "X-Nonce: %s\r\n", or(q.nonce, nonce()))
	for _, f := range q.fields {
		b.WriteString(f + "\r\n")
	}
	switch {
	case q.chunks != nil:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for _, c := range q.chunks {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(c), c)
		}
		b.WriteString("0\r\n\r\n")
	case q.body != "":
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(q.body), q.body)
	default:
		b.WriteString("\r\n")
	}
	return b.String()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// get is the control: one GET over a connection of its own that must be served.
func (r *rig) get(t testing.TB, path string) *message {
	t.Helper()
	c := r.dial(t)
	defer c.close()
	m := c.do(t, request{path: path})
	require.Equal(t, 200, m.status, "control request %s: %q", path, m.body)
	return m
}

// noncesIn finds the nonces in what was sent or received; field names keep their case on the way.
func noncesIn(b []byte) map[string]bool {
	set := map[string]bool{}
	for {
		_, rest, found := bytes.Cut(b, []byte("X-Nonce: n"))
		if !found {
			return set
		}
		n, _, _ := bytes.Cut(rest, []byte("."))
		set["n"+string(n)+"."] = true
		b = rest
	}
}

func poisoned(b []byte) bool {
	return bytes.Contains(b, []byte("X-Poison")) || bytes.Contains(b, []byte("x-poison"))
}
