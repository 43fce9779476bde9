package upstream_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/upstream"
)

func TestPool_NewestFirst(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		ex := r.ex[0]
		require.Nil(t, r.idle(ex, true), "an empty pool")
		var all []conn
		for range 3 {
			c := r.dial(ex)
			require.False(t, c.Reused())
			all = append(all, c)
		}
		r.counts(3, 0)
		for _, c := range all {
			r.put(ex, c.Conn)
		}
		r.counts(0, 3)
		for i := range 3 {
			c := r.idle(ex, i%2 == 0)
			require.Same(t, all[2-i].Conn, c)
			require.True(t, c.Reused())
		}
		require.Nil(t, r.idle(ex, false))
		r.counts(3, 0)
		for _, c := range all {
			c.open(t)
			r.discard(ex, c.Conn)
			c.closed(t)
		}
		r.counts(0, 0)
	})
}

func TestPool_CarriesBytesAfterReuse(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		ex := r.ex[0]
		c := r.dial(ex)
		for range 3 {
			_, err := io.WriteString(c.far, "answer")
			require.NoError(t, err)
			var got string
			on(t, ex, func() {
				for c.In.Buffered() < len("answer") && c.In.Fill() == nil {
				}
				got = string(c.In.Peek())
				c.In.Discard(len(got))
				c.Put(ex)
			})
			require.Equal(t, "answer", got)
			require.Same(t, c.Conn, r.idle(ex, true))
		}
		r.discard(ex, c.Conn)
	})
}

// disturbances are what an upstream may do to a connection that nobody uses.
var disturbances = map[string]func(t testing.TB, far *net.TCPConn){
	"bytes": func(t testing.TB, far *net.TCPConn) {
		_, err := io.WriteString(far, "HTTP/1.1 200 OK\r\nX-Poison: 1\r\nContent-Length: 6\r\n\r\npoison")
		require.NoError(t, err)
	},
	"one byte": func(t testing.TB, far *net.TCPConn) {
		_, err := far.Write([]byte{'\n'})
		require.NoError(t, err)
	},
	"FIN":   func(t testing.TB, far *net.TCPConn) { require.NoError(t, far.CloseWrite()) },
	"close": func(t testing.TB, far *net.TCPConn) { require.NoError(t, far.Close()) },
	"RST": func(t testing.TB, far *net.TCPConn) {
		require.NoError(t, far.SetLinger(0))
		require.NoError(t, far.Close())
	},
}

func forEachDisturbance(t *testing.T, body func(t *testing.T, r *rig, disturb func(conn))) {
	for name, f := range disturbances {
		t.Run(name, func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, r *rig) {
				body(t, r, func(c conn) { f(t, c.far) })
			})
		})
	}
}

func TestPool_DisturbedWhileIdleIsNeverHandedOut(t *testing.T) { // conformance 118
	forEachDisturbance(t, func(t *testing.T, r *rig, disturb func(conn)) {
		ex := r.ex[0]
		for _, sure := range []bool{true, false} {
			below, above := r.dial(ex), r.dial(ex)
			r.put(ex, below.Conn)
			r.put(ex, above.Conn)
			disturb(above)
			if sure { // the kernel knows
				r.until(ex, "the disturbance arrives", func() bool { return !above.Quiet() })
			} else { // the executor knows
				r.until(ex, "the disturbance is noticed", func() bool { return !above.SeemsQuiet() })
			}
			require.Same(t, below.Conn, r.idle(ex, sure))
			r.counts(1, 0)
			above.closed(t)
			r.discard(ex, below.Conn)
		}
	})
}

func TestPut_DisturbedConnectionIsClosed(t *testing.T) { // conformance 117, 118
	forEachDisturbance(t, func(t *testing.T, r *rig, disturb func(conn)) {
		ex := r.ex[0]
		c := r.dial(ex)
		disturb(c)
		r.until(ex, "the disturbance is noticed", func() bool { return !c.SeemsQuiet() })
		r.put(ex, c.Conn)
		r.counts(0, 0)
		require.Nil(t, r.idle(ex, false))
	})
}

func TestPut_DirtyBufferClosesTheConnection(t *testing.T) { // conformance 117
	forEachEngine(t, func(t *testing.T, r *rig) {
		ex := r.ex[0]
		c := r.dial(ex)
		_, err := io.WriteString(c.far, "KEEP-ME!AND-DROP-ME")
		require.NoError(t, err)
		on(t, ex, func() {
			for c.In.Buffered() <= len("KEEP-ME!") && c.In.Fill() == nil {
			}
			c.In.Discard(len("KEEP-ME!"))
		})
		require.NotZero(t, c.In.Buffered())
		r.put(ex, c.Conn)
		require.Zero(t, c.In.Buffered(), "and nothing of it is kept")
		c.closed(t)
		r.counts(0, 0)
		require.Nil(t, r.idle(ex, false))
	})
}

func TestPool_IsBounded(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		ex := r.ex[0]
		const surplus = 2
		var all []conn
		for range upstream.MaxIdle + surplus {
			all = append(all, r.dial(ex))
		}
		for _, c := range all {
			r.put(ex, c.Conn)
		}
		r.counts(0, upstream.MaxIdle)
		for _, c := range all[:surplus] {
			c.closed(t)
		}
		all[surplus].open(t)
		require.Same(t, all[len(all)-1].Conn, r.idle(ex, false))
		r.discard(ex, all[len(all)-1].Conn)
		r.up.Retire()
		r.counts(0, 0)
	})
}

func TestPool_EveryExecutorHasItsOwn(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		for i, ex := range r.ex {
			c := r.dial(ex)
			r.put(ex, c.Conn)
			for k, other := range r.ex {
				if k != i {
					require.Nil(t, r.idle(other, false), "a connection of another executor")
				}
			}
			require.Same(t, c.Conn, r.idle(ex, true))
			r.discard(ex, c.Conn)
		}
	})
}

func TestDial_FailureCountsNothing(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		require.NoError(t, r.far.Close())
		for _, ex := range r.ex {
			var c *upstream.Conn
			var err error
			on(t, ex, func() { c, err = connect(r.up, ex) })
			require.Error(t, err)
			require.Nil(t, c)
		}
		r.counts(0, 0)
	})
}

func TestUpstream_TellsItsCircuit(t *testing.T) {
	u := upstream.New("a:80", 1, breakerConfig, nil)
	require.Equal(t, "a:80", u.Addr())
	require.Zero(t, u.State())
	now := time.Now()
	for range breakerConfig.Threshold {
		ticket, ok := u.Breaker().Allow(now)
		require.True(t, ok)
		ticket.Failure(now)
	}
	require.Equal(t, 1, u.State())
	require.EqualValues(t, 1, u.Transitions(1))
	require.Zero(t, u.Transitions(0))
	_, ok := u.Breaker().Allow(now.Add(breakerConfig.Cooldown))
	require.True(t, ok)
	require.Equal(t, 2, u.State())
	require.EqualValues(t, 1, u.Transitions(2))
}
