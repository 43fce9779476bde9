package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/pool"
)

const patience = 10 * time.Second

// conn is a connection that only knows whether it was closed.
type conn struct {
	id     int
	closed bool
}

func (c *conn) Close() error { c.closed = true; return nil }

// rig is a pool whose dials end as the test says.
type rig struct {
	*pool.Pool[*conn]
	ex    *netloop.GoroutineEngine
	dials chan *conn // nil: the dial fails
	spare chan *conn
}

var errDial = errors.New("nobody is there")

func newRig(t *testing.T) *rig {
	r := &rig{ex: netloop.Goroutines(netloop.Options{}), dials: make(chan *conn), spare: make(chan *conn, 1)}
	r.Pool = pool.New(r.ex.Executors(), func(netloop.Executor, time.Duration) (*conn, error) {
		if c := <-r.dials; c != nil {
			return c, nil
		}
		return nil, errDial
	}, func(_ netloop.Executor, c *conn) { r.spare <- c })
	t.Cleanup(func() {
		close(r.dials)
		require.NoError(t, r.ex.Close())
	})
	return r
}

type result struct {
	c   *conn
	err error
}

// wait begins to wait, and returns once it is in the queue.
func (r *rig) wait(t *testing.T, w *pool.Waiter[*conn], fresh bool) chan result {
	t.Helper()
	got, n := make(chan result, 1), r.Waiting(r.ex)
	w.Reset(r.Pool, r.ex, fresh)
	go func() {
		c, err := w.Wait(patience)
		got <- result{c, err}
	}()
	require.Eventually(t, func() bool { return r.Waiting(r.ex) == n+1 }, patience, time.Millisecond)
	return got
}

func TestPool_NewestIsTakenFirstAndTheOldestGivesWay(t *testing.T) {
	r := newRig(t)
	_, ok := r.Pop(r.ex)
	require.False(t, ok)
	var all []*conn
	for i := range pool.MaxIdle + 1 {
		all = append(all, &conn{id: i})
		require.False(t, r.Push(r.ex, all[i]))
	}
	require.True(t, all[0].closed, "the oldest gives way")
	require.Equal(t, pool.MaxIdle, r.Idle())
	for i := pool.MaxIdle; i > 0; i-- {
		c, ok := r.Pop(r.ex)
		require.True(t, ok)
		require.Equal(t, i, c.id)
		require.False(t, c.closed)
	}
	require.Zero(t, r.Idle())
}

func TestPool_FilterClosesWhatIsNotKept(t *testing.T) {
	r := newRig(t)
	var w pool.Waiter[*conn]
	got := r.wait(t, &w, false) // from here on the pool knows its executor
	first := &conn{}
	r.dials <- first
	require.Equal(t, result{first, nil}, <-got)
	kept, gone := &conn{id: 1}, &conn{id: 2}
	r.Push(r.ex, kept)
	r.Push(r.ex, gone)
	r.Filter(func(c *conn, now time.Time) bool { return c == kept && !now.IsZero() })
	require.Eventually(t, func() bool { return r.Idle() == 1 }, patience, time.Millisecond)
	c, _ := r.Pop(r.ex)
	require.Same(t, kept, c)
	require.False(t, kept.closed)
	require.True(t, gone.closed)
}

func TestWaiter_GetsWhatComesFreeAndItsDialIsSpare(t *testing.T) {
	r := newRig(t)
	var w, fresh pool.Waiter[*conn]
	got := r.wait(t, &w, false)
	free := &conn{}
	require.True(t, r.Push(r.ex, free), "it goes to who waits")
	require.Equal(t, result{free, nil}, <-got)

	got = r.wait(t, &fresh, true)
	require.False(t, r.Push(r.ex, free), "a used one is not fresh")
	dialled := &conn{}
	r.dials <- dialled
	require.Equal(t, result{dialled, nil}, <-got)
	require.Equal(t, 1, r.Idle())
}

func TestWaiter_EndsWithWhatItsDialOrTheOwnerSays(t *testing.T) {
	r := newRig(t)
	var w pool.Waiter[*conn]
	got := r.wait(t, &w, false)
	r.dials <- nil
	require.ErrorIs(t, (<-got).err, errDial)

	got = r.wait(t, &w, false)
	w.Abort()
	require.ErrorIs(t, (<-got).err, pool.ErrAborted)
	late := &conn{}
	r.dials <- late
	require.Same(t, late, <-r.spare, "what nobody waits for is passed on")

	got = r.wait(t, &w, false)
	over := errors.New("over")
	r.FailWaiters(over)
	require.ErrorIs(t, (<-got).err, over)
}
