package netloop_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// tooMuch is more than the buffers of a connection hold.
var tooMuch = make([]byte, 32<<20)

// waits are the ways to wait for a connection, each with the setter of the deadline it obeys.
var waits = []struct {
	name string
	wait func(netloop.Conn) error
	set  func(netloop.Conn, time.Time) error
}{
	{"await", netloop.Conn.Await, netloop.Conn.SetReadDeadline},
	{"read", func(c netloop.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, netloop.Conn.SetReadDeadline},
	{"write", func(c netloop.Conn) error { _, err := c.Write(tooMuch); return err }, netloop.Conn.SetWriteDeadline},
	{"read, both", func(c netloop.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, netloop.Conn.SetDeadline},
}

func forEachWait(t *testing.T, body func(t *testing.T, s side, wait func() error, set func(time.Time) error)) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		for _, w := range waits {
			t.Run(w.name, func(t *testing.T) {
				l := listen(t)
				mark(e, l)
				accepted := make(chan side, 1)
				go e.Serve(l, func(ex netloop.Executor, c netloop.Conn) { accepted <- side{ex, c} })
				dial(t, l.Addr().String())
				s := receive(t, accepted, "a connection")
				body(t, s, func() error { return w.wait(s.conn) }, func(at time.Time) error { return w.set(s.conn, at) })
				on(t, s.ex, func() { s.conn.Close() })
			})
		}
	})
}

func TestDeadline_FiresSoonAfterItsTime(t *testing.T) {
	forEachWait(t, func(t *testing.T, s side, wait func() error, set func(time.Time) error) {
		for _, d := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 120 * time.Millisecond} {
			best := patience // of a few: others may use the machine
			for range 10 {
				on(t, s.ex, func() {
					start := time.Now()
					assert.NoError(t, set(start.Add(d)))
					assert.True(t, isTimeout(wait()))
					best = min(best, time.Since(start))
				})
				require.GreaterOrEqual(t, best, d)
				if best < d+30*time.Millisecond {
					break
				}
			}
			require.Less(t, best, d+30*time.Millisecond)
		}
	})
}

func TestDeadline_InThePastFailsAtOnceAndUntilItIsMoved(t *testing.T) {
	forEachWait(t, func(t *testing.T, s side, wait func() error, set func(time.Time) error) {
		on(t, s.ex, func() {
			for _, at := range []time.Time{time.Now(), time.Now().Add(-time.Second), time.Unix(1, 0)} {
				assert.NoError(t, set(at))
				assert.True(t, isTimeout(wait()))
				assert.True(t, isTimeout(wait()))
			}
			start := time.Now()
			set(start.Add(30 * time.Millisecond))
			assert.True(t, isTimeout(wait()))
			assert.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
		})
	})
}

func TestDeadline_SetWhileBlockedWakes(t *testing.T) {
	forEachWait(t, func(t *testing.T, s side, wait func() error, set func(time.Time) error) {
		for _, at := range []time.Time{time.Unix(1, 0), time.Now().Add(30 * time.Millisecond)} {
			on(t, s.ex, func() { set(time.Time{}) })
			ended := result(s.ex, wait)
			on(t, s.ex, func() { assert.NoError(t, set(at)) })
			require.True(t, isTimeout(receive(t, ended, "the deadline")))
		}
	})
}

// replaced has wait begin under a deadline that is replaced by another before it passes. On a machine that delays the
// test meanwhile it does so again.
func replaced(t *testing.T, s side, wait func() error, set func(time.Time) error, by time.Time) (ended <-chan error) {
	t.Helper()
	for inTime := false; !inTime; {
		if ended != nil {
			on(t, s.ex, func() { set(time.Unix(1, 0)) })
			receive(t, ended, "what was delayed")
		}
		first := time.Now().Add(60 * time.Millisecond)
		on(t, s.ex, func() { set(first) })
		ended = result(s.ex, wait)
		on(t, s.ex, func() {
			set(by)
			inTime = time.Now().Before(first)
		})
	}
	return ended
}

func TestDeadline_MovedLaterWhileBlockedHoldsOff(t *testing.T) {
	forEachWait(t, func(t *testing.T, s side, wait func() error, set func(time.Time) error) {
		later := time.Now().Add(200 * time.Millisecond)
		ended := replaced(t, s, wait, set, later)
		require.True(t, isTimeout(receive(t, ended, "the deadline")))
		require.False(t, time.Now().Before(later))
	})
}

func TestDeadline_ClearedWhileBlockedNeverFires(t *testing.T) {
	forEachWait(t, func(t *testing.T, s side, wait func() error, set func(time.Time) error) {
		ended := replaced(t, s, wait, set, time.Time{})
		select {
		case err := <-ended:
			t.Fatalf("ended with %v", err)
		case <-time.After(120 * time.Millisecond):
		}
		s.conn.Abort()
		assertClosed(t, receive(t, ended, "the end"))
	})
}

func TestDeadline_OfOneDirectionLeavesTheOtherAlone(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		on(t, s.ex, func() {
			s.conn.SetReadDeadline(time.Unix(1, 0))
			_, err := s.conn.Write([]byte("x"))
			assert.NoError(t, err)
			s.conn.SetReadDeadline(time.Time{})
			s.conn.SetWriteDeadline(time.Unix(1, 0))
		})
		roundTripped := result(s.ex, func() error { _, err := s.conn.Read(make([]byte, 1)); return err })
		_, err := io.ReadFull(client, make([]byte, 1))
		require.NoError(t, err)
		client.Write([]byte("y"))
		require.NoError(t, receive(t, roundTripped, "Read"))
	})
}

func TestDeadline_OfAWriteShowsWhatWasSent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		var n int
		on(t, s.ex, func() {
			s.conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			var err error
			n, err = s.conn.Write(tooMuch)
			assert.True(t, isTimeout(err))
			s.conn.Close()
		})
		require.Positive(t, n)
		require.Less(t, n, len(tooMuch))
		got, err := io.Copy(io.Discard, client)
		require.NoError(t, err)
		require.EqualValues(t, n, got)
	})
}

// They fire as soon as timers do that are set for the same moments.
func TestDeadline_ManyAtDifferentTimesAllFire(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		const n = 200
		late, timers := make(chan time.Duration, n), make(chan time.Duration, n)
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			defer c.Close()
			port := c.RemoteAddr().String()
			at := time.Now().Add(time.Duration(port[len(port)-1]-'0'+1) * 20 * time.Millisecond)
			time.AfterFunc(time.Until(at), func() { timers <- time.Since(at) })
			c.SetReadDeadline(at)
			if assert.True(t, isTimeout(c.Await())) {
				late <- time.Since(at)
			}
		})
		for range n {
			dial(t, addr)
		}
		var all, ofTimers []time.Duration
		for range n {
			all = append(all, receive(t, late, "a deadline"))
			ofTimers = append(ofTimers, receive(t, timers, "a timer"))
		}
		slices.Sort(all)
		slices.Sort(ofTimers)
		require.GreaterOrEqual(t, all[0], time.Duration(0))
		require.Less(t, all[n/2], 150*time.Millisecond+3*ofTimers[n/2])
	})
}
