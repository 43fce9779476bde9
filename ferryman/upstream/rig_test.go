package upstream_test

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// patience is how long a test waits for what must happen; nothing waits that long if it does.
const patience = 15 * time.Second

var breakerConfig = breaker.Config{Threshold: 3, Cooldown: time.Second}

// rig is an upstream whose far side the test holds, and the executors that use it.
type rig struct {
	t   testing.TB
	far net.Listener
	up  *upstream.Upstream
	ex  []netloop.Executor
}

// forEachEngine runs body over every engine of this system, with two loops where there are any.
func forEachEngine(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) { body(t, newRig(t, netloop.Goroutines(netloop.Options{}))) })
	if runtime.GOOS != "linux" {
		return
	}
	t.Run("loops", func(t *testing.T) {
		e, err := netloop.Loops(netloop.Options{Loops: 2})
		require.NoError(t, err)
		e.(interface{ Work(int) }).Work(2)
		body(t, newRig(t, e))
	})
}

func newRig(t *testing.T, e netloop.Engine) *rig {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	far := listen(t)
	return &rig{
		t: t, far: far,
		up: upstream.New(far.Addr().String(), e.Executors(), breakerConfig, dial.New(dial.Options{})),
		ex: executors(t, e),
	}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// executors meets all executors of an engine: a coroutine of each serves a connection. They are closed
// last, for an engine may well prefer an executor that has none.
func executors(t testing.TB, e netloop.Engine) (all []netloop.Executor) {
	t.Helper()
	met := make(chan netloop.Executor, 1)
	l := listen(t)
	served := make(chan error, 1)
	go func() {
		served <- e.Serve(l, func(ex netloop.Executor, c netloop.Conn) {
			defer c.Close()
			met <- ex
			c.Read(make([]byte, 1)) // the end
		})
	}()
	want := max(1, e.Executors()-1) // index 0 is that of Goroutines alone
	seen := map[int]bool{}
	for deadline := time.Now().Add(patience); len(all) < want; {
		require.True(t, time.Now().Before(deadline), "met %d executors of %d", len(all), want)
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		ex := receive(t, met, "a coroutine")
		if !seen[ex.Index()] {
			seen[ex.Index()] = true
			all = append(all, ex)
		}
	}
	l.Close()
	require.NoError(t, receive(t, served, "the end of Serve"))
	return all
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

// conn is one connection with both its ends.
type conn struct {
	*upstream.Conn
	far *net.TCPConn
}

// dial opens a connection on ex.
func (r *rig) dial(ex netloop.Executor) conn {
	r.t.Helper()
	var c *upstream.Conn
	var err error
	on(r.t, ex, func() { c, err = connect(r.up, ex) })
	require.NoError(r.t, err)
	far, err := r.far.Accept()
	require.NoError(r.t, err)
	require.Equal(r.t, c.LocalAddr().String(), far.RemoteAddr().String(), "a stranger has connected")
	r.t.Cleanup(func() { far.Close() })
	require.NoError(r.t, far.SetDeadline(time.Now().Add(patience)))
	return conn{c, far.(*net.TCPConn)}
}

// connect opens a connection on ex, as one of its coroutines.
func connect(u *upstream.Upstream, ex netloop.Executor) (*upstream.Conn, error) {
	var w upstream.Waiter
	w.Reset(u, ex, true, false)
	return w.Connection(patience)
}

// idle asks the pool of ex.
func (r *rig) idle(ex netloop.Executor, sure bool) (c *upstream.Conn) {
	r.t.Helper()
	on(r.t, ex, func() { c = r.up.Idle(ex, sure) })
	return c
}

func (r *rig) put(ex netloop.Executor, c *upstream.Conn) {
	r.t.Helper()
	on(r.t, ex, func() { c.Put(ex) })
}

func (r *rig) discard(ex netloop.Executor, c *upstream.Conn) {
	r.t.Helper()
	on(r.t, ex, func() { c.Discard() })
}

// until waits for ok, asked on ex.
func (r *rig) until(ex netloop.Executor, what string, ok func() bool) {
	r.t.Helper()
	require.Eventually(r.t, func() (is bool) {
		on(r.t, ex, func() { is = ok() })
		return is
	}, patience, time.Millisecond, what)
}

// counts insists on the numbers of connections.
func (r *rig) counts(inUse, idle int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		u, i := r.up.Connections()
		return u == inUse && i == idle
	}, patience, time.Millisecond, "want %d in use and %d idle", inUse, idle)
}

// closed insists that the near end was closed, and open that it was not. Where the test has closed
// the far end there is nobody to see it.
func (c conn) closed(t testing.TB) {
	t.Helper()
	_, err := io.Copy(io.Discard, c.far)
	if err != nil { // unread bytes make it a reset
		var ne net.Error
		require.False(t, errors.As(err, &ne) && ne.Timeout(), "still open")
	}
}

func (c conn) open(t testing.TB) {
	t.Helper()
	require.NoError(t, c.far.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := c.far.Read(make([]byte, 1))
	var ne net.Error
	require.True(t, errors.As(err, &ne) && ne.Timeout(), "closed: %v", err)
	require.NoError(t, c.far.SetReadDeadline(time.Now().Add(patience)))
}
