package netloop_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// patience is how long a test waits for what must happen; nothing waits that long if it does.
const patience = 15 * time.Second

// engines returns a fresh one of every kind that this system has, by name.
func engines(t testing.TB, o netloop.Options) map[string]netloop.Engine {
	t.Helper()
	all := map[string]netloop.Engine{"goroutines": netloop.Goroutines(o)}
	if runtime.GOOS == "linux" {
		e, err := netloop.Loops(o)
		require.NoError(t, err)
		all["loops"] = e
	}
	for _, e := range all {
		t.Cleanup(func() { e.Close() })
	}
	return all
}

// forEachEngine runs body over every engine of this system, with two loops where there are any.
func forEachEngine(t *testing.T, body func(t *testing.T, e netloop.Engine)) {
	t.Helper()
	forEachOf(t, engines(t, netloop.Options{Loops: 2}), body)
}

// forEachOf runs body over engines, and closes each behind it.
func forEachOf(t *testing.T, all map[string]netloop.Engine, body func(t *testing.T, e netloop.Engine)) {
	t.Helper()
	for name, e := range all {
		t.Run(name, func(t *testing.T) {
			body(t, e)
			require.NoError(t, e.Close())
		})
	}
}

// listen opens a listener on loopback.
func listen(t testing.TB) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	secured.Delete(l.Addr().String()) // an earlier listener may have had the same port
	return l
}

// serve has e serve a listener on loopback, and returns its address.
func serve(t testing.TB, e netloop.Engine, handle func(netloop.Executor, netloop.Conn)) string {
	t.Helper()
	l := listen(t)
	mark(e, l)
	served := make(chan error, 1)
	go func() { served <- e.Serve(l, handle) }()
	t.Cleanup(func() {
		l.Close()
		e.Close()
		require.NoError(t, receive(t, served, "the end of Serve"))
	})
	return l.Addr().String()
}

// dial connects to a served address as a client, with a deadline that ends a test that hangs.
func dial(t testing.TB, addr string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	p, err := newPeer(c.(*net.TCPConn), addr)
	require.NoError(t, err)
	return p
}

// receive returns what comes over ch, and fails if nothing does.
func receive[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

// eventually waits for ok to become true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, time.Millisecond, what)
}

// on runs f as a coroutine of ex and waits until it has returned.
func on(t testing.TB, ex netloop.Executor, f func()) {
	t.Helper()
	done := make(chan struct{})
	ex.Post(func() {
		defer close(done)
		f()
	})
	receive(t, done, "a coroutine")
}

// result runs f as a coroutine of ex. What it returns can be received from the channel.
func result[T any](ex netloop.Executor, f func() T) <-chan T {
	ch := make(chan T, 1)
	ex.Post(func() { ch <- f() })
	return ch
}

// side is an accepted connection with its executor.
type side struct {
	ex   netloop.Executor
	conn netloop.Conn
}

// pair returns an accepted connection and its client.
func pair(t testing.TB, e netloop.Engine) (side, *peer) {
	t.Helper()
	ch := make(chan side, 1)
	addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) { ch <- side{ex, c} })
	client := dial(t, addr)
	return receive(t, ch, "an accepted connection"), client
}

// dialled returns a connection of ex and what accepted it: on another engine, of goroutines.
func dialled(t testing.TB, ex netloop.Executor) (netloop.Conn, net.Conn) {
	t.Helper()
	l := listen(t)
	var c netloop.Conn
	var err error
	on(t, ex, func() { c, err = ex.Dial(addrPort(l), patience, nil) })
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { far.Close() })
	require.NoError(t, far.SetDeadline(time.Now().Add(patience)))
	return c, far
}

// addrPort is the address of a listener.
func addrPort(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// echo sends back what it receives.
func echo(_ netloop.Executor, c netloop.Conn) {
	defer c.Close()
	b := make([]byte, 4096)
	for c.Await() == nil {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

// roundTrip has an echo server answer a message.
func roundTrip(t testing.TB, c net.Conn, message string) {
	t.Helper()
	_, err := io.WriteString(c, message)
	require.NoError(t, err)
	b := make([]byte, len(message))
	_, err = io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, message, string(b))
}

// reset makes the client end its connection with a RST.
func reset(t testing.TB, c *peer) {
	t.Helper()
	require.NoError(t, c.SetLinger(0))
	require.NoError(t, c.Close())
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &ne) && ne.Timeout()
}

func assertClosed(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, net.ErrClosed)
}

// tryDial is dial for those who expect to be refused: it returns nil then.
func tryDial(addr string) *peer {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	c.SetDeadline(time.Now().Add(patience))
	p, err := newPeer(c.(*net.TCPConn), addr)
	if err != nil {
		c.Close()
		return nil
	}
	return p
}
