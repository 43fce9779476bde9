package netloop_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// wrapped is a socket with something above it.
type wrapped struct {
	*net.TCPConn
	r io.Reader
}

func (w wrapped) Read(b []byte) (int, error) { return w.r.Read(b) }

// adopted returns both ends of a connection of each kind that Adopt takes.
func adopted(t *testing.T, g *netloop.GoroutineEngine, kind string) (netloop.Conn, net.Conn) {
	t.Helper()
	if kind == "pipe" {
		near, far := net.Pipe()
		return g.Adopt(near), far
	}
	l := listen(t)
	far := dial(t, l.Addr().String())
	near, err := l.Accept()
	require.NoError(t, err)
	if kind == "wrapped" {
		near = wrapped{near.(*net.TCPConn), bufio.NewReader(near)}
	}
	return g.Adopt(near), far
}

func forEachKind(t *testing.T, kinds []string, body func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			g := netloop.Goroutines(netloop.Options{})
			defer g.Close()
			c, far := adopted(t, g, kind)
			body(t, g, c, far)
		})
	}
}

var allKinds = []string{"tcp", "wrapped", "pipe"}

func TestAdopt_AwaitsEveryKindOfConnection(t *testing.T) {
	forEachKind(t, allKinds, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		awaited := result[error](g, c.Await)
		go io.WriteString(far, "hello")
		require.NoError(t, receive(t, awaited, "Await"))
		require.NoError(t, c.Await())
		require.False(t, c.Quiet())
		b := make([]byte, 5)
		_, err := io.ReadFull(c, b)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))

		require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		require.True(t, isTimeout(c.Await()))
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		go far.Close()
		require.NoError(t, c.Await())
		_, err = c.Read(b)
		require.Equal(t, io.EOF, err)
	})
}

func TestAdopt_AbortEndsEveryKindOfConnection(t *testing.T) {
	forEachKind(t, allKinds, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		awaited := result[error](g, c.Await)
		wrote := result(g, func() error { _, err := c.Write(tooMuch); return err })
		c.Abort()
		assertClosed(t, receive(t, awaited, "Await"))
		assertClosed(t, receive(t, wrote, "Write"))
		_, err := c.Read(make([]byte, 1))
		assertClosed(t, err)
		require.NoError(t, c.Close())
	})
}

func TestAdopt_DetachGivesBackWhatWasReadAhead(t *testing.T) {
	forEachKind(t, allKinds, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		go func() {
			io.WriteString(far, "hello")
			far.Close()
		}()
		require.NoError(t, c.Await())
		plain, err := c.Detach()
		require.NoError(t, err)
		got, err := io.ReadAll(plain)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		require.NoError(t, plain.Close())
	})
}

func TestAdopt_GuardSeesThroughAWrapper(t *testing.T) {
	forEachKind(t, []string{"tcp", "wrapped"}, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		victim, _ := dialled(t, g)
		fallen := result[error](g, victim.Await)
		require.False(t, c.Gone())
		c.Guard(victim)
		go io.WriteString(far, "unread")
		far.Close()
		assertClosed(t, receive(t, fallen, "the victim"))
		require.True(t, c.Gone())
	})
}

func TestAdopt_OnAClosedEngineFailsAtOnce(t *testing.T) {
	g := netloop.Goroutines(netloop.Options{})
	require.NoError(t, g.Close())
	near, far := net.Pipe()
	c := g.Adopt(near)
	assertClosed(t, c.Await())
	_, err := far.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.NoError(t, c.Close())
}
