package netloop_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// executor returns one of e's.
func executor(t *testing.T, e netloop.Engine) netloop.Executor {
	s, _ := pair(t, e)
	return s.ex
}

// attempt dials from ex.
func attempt(ex netloop.Executor, addr string, timeout time.Duration, stop *netloop.Stop) <-chan error {
	return result(ex, func() error {
		c, err := ex.Dial(netip.MustParseAddrPort(addr), timeout, stop)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

func TestDial_ConnectsToAnAddress(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		l := listen(t)
		go netloop.Goroutines(netloop.Options{}).Serve(l, echo)
		ex := executor(t, e)
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		for _, addr := range []string{"127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port} {
			for _, timeout := range []time.Duration{patience, 0, -1} {
				on(t, ex, func() {
					c, err := ex.Dial(netip.MustParseAddrPort(addr), timeout, new(netloop.Stop))
					if !assert.NoError(t, err, addr) {
						return
					}
					defer c.Close()
					assert.Equal(t, "127.0.0.1:"+port, c.RemoteAddr().String())
					c.Write([]byte("hello"))
					assert.NoError(t, c.Await())
					b := make([]byte, 5)
					_, err = io.ReadFull(c, b)
					assert.NoError(t, err)
					assert.Equal(t, "hello", string(b))
				})
			}
		}
	})
}

func TestDial_RefusedIsAnErrorLikeNets(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		l := listen(t)
		l.Close()
		ex := executor(t, e)
		err := receive(t, attempt(ex, l.Addr().String(), patience, nil), "Dial")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "dial", op.Op)
		require.False(t, op.Timeout())
	})
}

func TestDial_IsStopped(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		addr, ex := fullBacklog(t), executor(t, e)
		var stop netloop.Stop
		stopped, other := attempt(ex, addr, time.Hour, &stop), attempt(ex, addr, time.Hour, nil)
		on(t, ex, func() {}) // they are under way
		stop.Abort()
		stop.Abort()
		require.Error(t, receive(t, stopped, "the dial that was stopped"))
		require.Error(t, receive(t, attempt(ex, addr, time.Hour, &stop), "one that begins later"))
		select {
		case err := <-other:
			t.Fatal("another dial has ended", err)
		default:
		}
	})
}

func TestDial_TimesOutWhereNobodyAccepts(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		addr := fullBacklog(t)
		s, client := pair(t, e)
		start := time.Now()
		failed := attempt(s.ex, addr, 150*time.Millisecond, nil)
		client.Write([]byte("x"))
		require.NoError(t, receive(t, result(s.ex, s.conn.Await), "Await"))
		err := receive(t, failed, "Dial")
		var ne net.Error
		require.True(t, errors.As(err, &ne) && ne.Timeout(), "%v", err)
		require.GreaterOrEqual(t, time.Since(start), 150*time.Millisecond)
		require.Error(t, receive(t, attempt(s.ex, addr, time.Nanosecond, nil), "Dial"))
	})
}

func TestDial_EndsWithItsEngine(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		ex := executor(t, e)
		failed := attempt(ex, fullBacklog(t), time.Hour, nil)
		on(t, ex, func() {})
		require.NoError(t, e.Close())
		require.Error(t, receive(t, failed, "Dial"))
	})
}

// fullBacklog returns the address of a listener that takes no connection any more.
func fullBacklog(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	sa, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(sa.(*syscall.SockaddrInet4).Port))
	for range 20 {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the backlog never fills")
	return ""
}

// The system may give a socket the very port that it dials, and TCP then connects it to itself.
func TestDial_NeverConnectsToItself(t *testing.T) {
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	if e == nil {
		return // net.Dialer sees to it
	}
	_, client := pair(t, e)
	vacant := client.LocalAddr().String() // of those that the system chooses from for a dial
	reset(t, client)
	ex := executor(t, e)
	on(t, ex, func() {
		for range 30_000 { // about twice as many as there are to choose from
			c, err := ex.Dial(netip.MustParseAddrPort(vacant), patience, nil)
			if !assert.ErrorIs(t, err, syscall.ECONNREFUSED) {
				if c != nil {
					c.Close()
				}
				return
			}
		}
	})
}
