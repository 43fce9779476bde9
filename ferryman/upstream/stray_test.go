package upstream_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// doubtful is pooled, after an answer that had no body by rule.
func (f *fakes) doubtful(i int) (c *upstream.Conn, socket *fakeConn) {
	c, socket = f.dial(i)
	f.on(i, func(ex *fakeExecutor) {
		c.Doubt()
		c.Put(ex)
	})
	return c, socket
}

func TestDoubt_HasTheKernelLook(t *testing.T) {
	f := newFakes(t, 1)
	_, socket := f.doubtful(0)
	socket.loudOnAsking = true
	f.on(0, func(ex *fakeExecutor) { require.Nil(t, f.up.Idle(ex, false)) })
	require.Equal(t, 1, socket.closed)
}

func TestDoubt_EndsWithTheNextExchange(t *testing.T) {
	f := newFakes(t, 1)
	c, socket := f.doubtful(0)
	f.on(0, func(ex *fakeExecutor) {
		require.Same(t, c, f.up.Idle(ex, false))
		c.Put(ex)
		socket.loudOnAsking = true
		require.Same(t, c, f.up.Idle(ex, false), "what the executor knows is enough")
	})
}

// caught reports whether a connection in doubt is closed instead of pooled.
func (f *fakes) caught() bool {
	_, socket := f.doubtful(0)
	return socket.closed == 1
}

func TestDoubt_UpstreamThatWasCaughtGetsNewConnections(t *testing.T) {
	for name, row := range map[string]struct {
		stray int
		after time.Duration
		want  bool
	}{
		"bytes at once":       {5, 0, true},
		"bytes soon":          {5, time.Second / 2, true},
		"bytes much later":    {5, time.Minute, false},
		"the end, at once":    {0, 0, false},
		"the end, much later": {0, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakes(t, 1)
			require.False(t, f.caught())
			f.on(0, func(ex *fakeExecutor) { require.NotNil(t, f.up.Idle(ex, true)) })
			_, socket := f.doubtful(0)
			socket.stray, socket.loud = row.stray, true
			f.ex[0].now = f.ex[0].now.Add(row.after)
			f.on(0, func(ex *fakeExecutor) { require.Nil(t, f.up.Idle(ex, true)) })
			require.Equal(t, 1, socket.closed)
			require.Equal(t, row.want, f.caught())
			if !row.want {
				return
			}
			f.ex[0].now = f.ex[0].now.Add(time.Hour)
			require.False(t, f.caught(), "it may have been mended")
		})
	}
}

func TestDoubt_BytesThatAreThereAlreadyCatchItToo(t *testing.T) {
	f := newFakes(t, 1)
	c, socket := f.dial(0)
	socket.stray, socket.loud = 1, true
	f.on(0, func(ex *fakeExecutor) { c.Put(ex) })
	require.Equal(t, 1, socket.closed)
	require.True(t, f.caught())
	require.Zero(t, f.pooled(0).closed, "others are used again")
}
