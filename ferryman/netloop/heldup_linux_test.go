package netloop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// A loop that is held up, as on a machine that is too busy, finds a deadline and what came before it at the
// same time. What came counts: else a stalled proxy would blame its peers.
const (
	limit  = 50 * time.Millisecond
	holdUp = 4 * limit
)

func TestHeldUp_InputThatCameInTimeIsRead(t *testing.T) {
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	s, client := pair(t, e)
	for range 3 {
		got := result(s.ex, func() outcome {
			s.conn.SetReadDeadline(time.Now().Add(limit))
			n, err := s.conn.Read(make([]byte, 8))
			return outcome{n, err}
		})
		on(t, s.ex, func() {}) // the reader waits by now
		on(t, s.ex, func() {
			client.Write([]byte("in time"))
			time.Sleep(holdUp) //nolint:forbidigo // it is what holds the loop up
		})
		require.Equal(t, outcome{7, nil}, receive(t, got, "a read"))
	}
	// And what does not come is still an error.
	on(t, s.ex, func() {
		s.conn.SetReadDeadline(time.Now().Add(limit))
		_, err := s.conn.Read(make([]byte, 8))
		require.True(t, isTimeout(err), err)
	})
}

func TestHeldUp_AConnectThatSucceededInTimeIsOne(t *testing.T) {
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	ex, l := executor(t, e), listen(t)
	for range 3 {
		dialled := make(chan error, 1)
		on(t, ex, func() {
			ex.Go(func() {
				c, err := ex.Dial(addrPort(l), limit, nil)
				if err == nil {
					c.Close()
				}
				dialled <- err
			})
			ex.Go(func() { time.Sleep(holdUp) }) //nolint:forbidigo // it is what holds the loop up
		})
		require.NoError(t, receive(t, dialled, "a dial"))
	}
}
