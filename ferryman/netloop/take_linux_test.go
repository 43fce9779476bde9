package netloop_test

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

func TestTake_LeavesWhatItCannotTake(t *testing.T) {
	l := listen(t)
	far := dial(t, l.Addr().String())
	nc, err := l.Accept()
	require.NoError(t, err)
	defer nc.Close()
	never := func(netloop.Executor, netloop.Conn) { t.Error("taken") }

	e := engines(t, netloop.Options{Loops: 1})["loops"]
	fds := descriptors()
	require.ErrorContains(t, e.Take(struct{ net.Conn }{nc}, never), "not a *net.TCPConn")
	withoutDescriptors(t, func() { require.ErrorIs(t, e.Take(nc, never), syscall.EMFILE) })
	require.Equal(t, fds, descriptors())
	require.NoError(t, e.Close())
	closed := descriptors()
	require.ErrorIs(t, e.Take(nc, never), net.ErrClosed)
	require.Equal(t, closed, descriptors())

	_, err = nc.Write([]byte("still here"))
	require.NoError(t, err)
	_, err = io.ReadFull(far, make([]byte, 10))
	require.NoError(t, err)
}

// withoutDescriptors runs f while no descriptor can be opened.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 3 // those that there always are
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	f()
}

func TestTake_ServesAConnectionOnEveryEngine(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		l := listen(t)
		fds := descriptors()
		far := dial(t, l.Addr().String())
		io.WriteString(far, "early")
		nc, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, e.Take(nc, echo))
		_, err = io.ReadFull(far, make([]byte, 5))
		require.NoError(t, err)
		roundTrip(t, far, "hello")
		far.Close()
		eventually(t, "the descriptors are back", func() bool { return descriptors() <= fds })
	})
}

// Those that are taken count as those that are accepted.
func TestTake_SpreadsConnectionsOverTheLoopsAtWork(t *testing.T) {
	e, work := scaled(t, 2)
	work(2)
	l := listen(t)
	on := make(chan int, 1)
	per := map[int]int{}
	for range 20 {
		dial(t, l.Addr().String())
		nc, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, e.Take(nc, func(ex netloop.Executor, _ netloop.Conn) { on <- ex.Index() }))
		per[receive(t, on, "a coroutine")]++
	}
	require.Equal(t, map[int]int{1: 10, 2: 10}, per)
}

// An engine that closes gives everything back, whoever is on the way to it.
func TestTake_WhileTheEngineCloses(t *testing.T) {
	l := listen(t)
	for range 20 {
		fds := descriptors()
		e := engines(t, netloop.Options{Loops: 2})["loops"]
		var taken, ended atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					return
				}
				nc, err := l.Accept()
				if err == nil {
					err = e.Take(nc, func(ex netloop.Executor, c netloop.Conn) {
						defer ended.Add(1)
						taken.Add(1)
						echo(ex, c)
					})
				}
				c.Close()
				if err != nil {
					nc.Close()
					return
				}
			}
		}()
		eventually(t, "some are taken", func() bool { return taken.Load() > 5 })
		require.NoError(t, e.Close())
		receive(t, done, "the last Take")
		require.Equal(t, taken.Load(), ended.Load())
		eventually(t, "the descriptors are back", func() bool { return descriptors() <= fds })
	}
}
