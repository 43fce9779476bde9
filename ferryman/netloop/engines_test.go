package netloop_test

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// patience is how long a test waits for what must happen; nothing waits that long if it does.
const patience = 10 * time.Second

// forEachEngine runs body over every engine of this system, on engines of its own that are
// closed at the end.
func forEachEngine(t *testing.T, body func(t *testing.T, e netloop.Engine)) {
	t.Helper()
	forEachEngineWith(t, netloop.Options{}, body)
}

func forEachEngineWith(t *testing.T, o netloop.Options, body func(t *testing.T, e netloop.Engine)) {
	t.Helper()
	run := func(name string, e netloop.Engine) {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { e.Close() })
			body(t, e)
		})
	}
	run("goroutines", netloop.Goroutines(o))
	if runtime.GOOS != "linux" {
		return
	}
	o.Loops = 2
	e, err := netloop.Loops(o)
	require.NoError(t, err)
	run("loops", e)
}

// serve has e serve a listener on loopback, and returns its address.
func serve(t testing.TB, e netloop.Engine, handle func(netloop.Executor, netloop.Conn)) string {
	t.Helper()
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- e.Serve(l, handle) }()
	t.Cleanup(func() {
		e.Close()
		require.NoError(t, <-served)
	})
	return l.Addr().String()
}

// dial connects to a served address, with a deadline that ends a test that hangs.
func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c.(*net.TCPConn)
}

// echo sends back what it receives.
func echo(_ netloop.Executor, c netloop.Conn) {
	defer c.Close()
	b := make([]byte, 4096)
	for {
		if c.Await() != nil {
			return
		}
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

func TestSmoke(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		addr := serve(t, e, echo)
		c := dial(t, addr)
		_, err := c.Write([]byte("hello"))
		require.NoError(t, err)
		b := make([]byte, 5)
		_, err = io.ReadFull(c, b)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))
	})
}
