package netloop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// A loop that is stalled, as on a machine that is too busy, finds a deadline and what came before it at the
// same time. What came counts: else a stalled proxy would blame its peers.
const (
	limit = 50 * time.Millisecond
	stall = 4 * limit
)

func TestStalledLoop_InputThatCameInTimeIsRead(t *testing.T) {
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	s, client := pair(t, e)
	for range 3 {
		on(t, s.ex, func() { s.conn.SetReadDeadline(time.Time{}) })
		got := result(s.ex, func() outcome {
			n, err := s.conn.Read(make([]byte, 8))
			return outcome{n, err}
		})
		on(t, s.ex, func() {}) // the reader waits by now
		on(t, s.ex, func() {
			s.conn.SetReadDeadline(time.Now().Add(limit))
			client.Write([]byte("in time"))
			time.Sleep(stall) //nolint:forbidigo // it stalls the loop
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

func TestStalledLoop_AConnectThatSucceededInTimeIsOne(t *testing.T) {
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
			ex.Go(func() { time.Sleep(stall) }) //nolint:forbidigo // it stalls the loop
		})
		require.NoError(t, receive(t, dialled, "a dial"))
	}
}

// Who has done a lot lets others run before it does more. Their time is not the peer's either.
func TestStalledLoop_TimeOfOtherCoroutinesIsNotThePeers(t *testing.T) {
	for _, name := range []string{"loops", "TLS on loops"} {
		t.Run(name, func(t *testing.T) {
			s, client := pair(t, transports(t, netloop.Options{Loops: 1})[name])
			// after runs f where a deadline was in time but is so no more once others have run.
			after := func(others, f func()) {
				done := make(chan struct{})
				on(t, s.ex, func() {
					s.ex.Go(func() {
						defer close(done)
						s.conn.SetDeadline(time.Time{})
						for range 64 { // as many calls as use up the budget
							s.conn.Write([]byte("x"))
						}
						s.conn.SetDeadline(time.Now().Add(limit))
						f()
					})
					s.ex.Go(func() {
						others()
						time.Sleep(stall) //nolint:forbidigo // it stalls the loop
					})
				})
				receive(t, done, "a coroutine")
			}
			after(func() { client.Write([]byte("in time")) }, func() {
				n, err := s.conn.Read(make([]byte, 8))
				assert.Equal(t, outcome{7, nil}, outcome{n, err})
			})
			after(func() {}, func() {
				n, err := s.conn.Write([]byte("there is room"))
				assert.Equal(t, outcome{13, nil}, outcome{n, err})
			})
			after(func() {}, func() { assert.True(t, isTimeout(s.conn.Await()), "nothing came") })
		})
	}
}
