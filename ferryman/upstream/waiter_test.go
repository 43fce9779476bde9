package upstream_test

import (
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// gated is an executor whose dials end as the test says.
type gated struct {
	*netloop.GoroutineEngine
	dials chan error // nil: it connects
	under atomic.Int32
}

func (g *gated) Dial(to netip.AddrPort, timeout time.Duration, stop *netloop.Stop) (netloop.Conn, error) {
	g.under.Add(1)
	defer g.under.Add(-1)
	if err := <-g.dials; err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return g.GoroutineEngine.Dial(to, patience, nil)
}

// queued is an upstream that is reached through gated dials. Its far side takes connections and keeps them.
type queued struct {
	t  testing.TB
	ex *gated
	up *upstream.Upstream
}

func newQueued(t testing.TB) *queued {
	q := &queued{t, &gated{GoroutineEngine: netloop.Goroutines(netloop.Options{}), dials: make(chan error)}, nil}
	far := listen(t)
	var conns sync.Map
	go func() {
		for {
			c, err := far.Accept()
			if err != nil {
				return
			}
			conns.Store(c, true)
		}
	}()
	q.up = upstream.New(far.Addr().String(), 1, breakerConfig, dial.New(dial.Options{}))
	t.Cleanup(func() {
		far.Close()
		close(q.ex.dials)
		require.NoError(t, q.ex.Close())
		conns.Range(func(c, _ any) bool { return c.(net.Conn).Close() == nil })
	})
	return q
}

// waiting is a request that waits.
type waiting struct {
	upstream.Waiter
	got chan result
}

type result struct {
	c   *upstream.Conn
	err error
}

// wait begins to wait. It returns when the request is in the queue.
func (q *queued) wait(fresh, sure bool, timeout time.Duration) *waiting {
	q.t.Helper()
	w := &waiting{got: make(chan result, 1)}
	w.Reset(q.up, q.ex, fresh, sure)
	n := q.up.Waiting(q.ex)
	go func() {
		c, err := w.Connection(timeout)
		w.got <- result{c, err}
	}()
	q.until("it is in the queue", func() bool { return q.up.Waiting(q.ex) == n+1 })
	return w
}

func (q *queued) until(what string, ok func() bool) {
	q.t.Helper()
	require.Eventually(q.t, ok, patience, time.Millisecond, what)
}

// under waits until so many dials are under way, and no more.
func (q *queued) under(n int) {
	q.t.Helper()
	q.until("dials", func() bool { return int(q.ex.under.Load()) == n })
}

// dialled ends a dial.
func (q *queued) dialled(err error) {
	q.t.Helper()
	select {
	case q.ex.dials <- err:
	case <-time.After(patience):
		q.t.Fatal("no dial is under way")
	}
}

func (w *waiting) want(t testing.TB) *upstream.Conn {
	t.Helper()
	r := receive(t, w.got, "a connection")
	require.NoError(t, r.err)
	return r.c
}

func (w *waiting) fails(t testing.TB, want error) {
	t.Helper()
	r := receive(t, w.got, "an error")
	require.ErrorIs(t, r.err, want)
	require.Nil(t, r.c)
}

func (w *waiting) still(t testing.TB) {
	t.Helper()
	select {
	case r := <-w.got:
		t.Fatalf("it does not wait any more: %v", r.err)
	default:
	}
}

func TestWaiter_DialsAreBoundedAndServeInOrder(t *testing.T) {
	q := newQueued(t)
	var all []*waiting
	for range 3 * upstream.MaxDials {
		all = append(all, q.wait(false, false, patience))
	}
	q.under(upstream.MaxDials)
	for _, w := range all {
		require.LessOrEqual(t, int(q.ex.under.Load()), upstream.MaxDials)
		w.still(t)
		q.dialled(nil)
		c := w.want(t)
		require.False(t, c.Reused())
		c.Discard()
	}
	q.under(0)
	q.counts(0, 0)
}

func (q *queued) counts(inUse, idle int) {
	q.t.Helper()
	q.until("connections", func() bool {
		u, i := q.up.Connections()
		return u == inUse && i == idle
	})
}

func TestWaiter_ConnectionThatComesFreeIsTakenFirst(t *testing.T) {
	q := newQueued(t)
	a, b, c := q.wait(false, false, patience), q.wait(false, true, patience), q.wait(false, false, patience)
	q.under(3)
	q.dialled(nil)
	conn := a.want(t)
	conn.Put(q.ex)
	require.Same(t, conn, b.want(t))
	require.True(t, conn.Reused())
	conn.Put(q.ex)
	require.Same(t, conn, c.want(t))
	q.under(2)
	q.counts(1, 0)
	q.dialled(nil) // nobody waits: these are for the next ones
	q.dialled(nil)
	q.counts(1, 2)
	require.NotNil(t, q.up.Idle(q.ex, true))
	conn.Put(q.ex)
	q.counts(1, 2)
}

func TestWaiter_OneThatMustBeFreshGetsADialled(t *testing.T) {
	q := newQueued(t)
	first := q.wait(false, false, patience)
	q.dialled(nil)
	conn := first.want(t)
	fresh, other := q.wait(true, false, patience), q.wait(false, false, patience)
	q.under(2)
	conn.Put(q.ex)
	require.Same(t, conn, other.want(t))
	fresh.still(t)
	conn.Put(q.ex)
	fresh.still(t)
	q.counts(0, 1)
	q.dialled(nil)
	got := fresh.want(t)
	require.NotSame(t, conn, got)
	require.False(t, got.Reused())
}

func TestWaiter_FailureIsThatOfWhoHasWaitedLongest(t *testing.T) {
	q := newQueued(t)
	a, b := q.wait(false, false, patience), q.wait(false, false, patience)
	q.dialled(syscall.ECONNREFUSED)
	a.fails(t, syscall.ECONNREFUSED)
	b.still(t)
	q.dialled(syscall.EMFILE)
	b.fails(t, upstream.ErrShortage)
	q.under(0)
	q.counts(0, 0)
}

func TestWaiter_OneThatGoesAwayLeavesItsDialToOthers(t *testing.T) {
	q := newQueued(t)
	gone := q.wait(false, false, patience)
	q.under(1)
	gone.Abort()
	gone.Abort()
	gone.fails(t, upstream.ErrAborted)
	next := q.wait(false, false, patience)
	q.under(1) // which is enough
	q.dialled(nil)
	next.want(t).Discard()
	q.under(0)

	gone = q.wait(false, false, patience)
	gone.Abort()
	gone.fails(t, upstream.ErrAborted)
	q.dialled(nil)
	q.counts(0, 1)
	_, err := gone.Connection(patience)
	require.ErrorIs(t, err, upstream.ErrAborted, "it does not begin")
}

// The connection was handed over, but the request has gone before it could take it.
func TestWaiter_ConnectionOfOneThatWentAtTheLastMomentIsKept(t *testing.T) {
	q := newQueued(t)
	for range 200 {
		w := q.wait(false, false, patience)
		q.under(1)
		go w.Abort()
		q.dialled(nil)
		if r := receive(t, w.got, "an outcome"); r.err == nil {
			r.c.Put(q.ex)
		} else {
			require.ErrorIs(t, r.err, upstream.ErrAborted)
		}
		q.counts(0, 1)
		q.up.Idle(q.ex, false).Discard()
	}
}

// Those that have no dial of their own wait for as long as a dial may take. It says nothing about the upstream.
func TestWaiter_WaitThatRunsOutIsNoFailure(t *testing.T) {
	q := newQueued(t)
	var dialling []*waiting
	for range upstream.MaxDials {
		dialling = append(dialling, q.wait(false, false, patience))
	}
	q.under(upstream.MaxDials)
	begun := time.Now()
	late, patient := q.wait(false, false, 50*time.Millisecond), q.wait(false, false, patience)
	late.fails(t, upstream.ErrBusy)
	require.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
	for _, w := range dialling {
		w.still(t)
		q.dialled(syscall.ETIMEDOUT)
		w.fails(t, syscall.ETIMEDOUT)
	}
	patient.still(t)
	q.dialled(nil)
	patient.want(t).Discard()
}

func TestWaiter_AllGiveUpTogether(t *testing.T) {
	q := newQueued(t)
	a, b := q.wait(false, false, patience), q.wait(true, true, patience)
	q.up.FailWaiters()
	a.fails(t, upstream.ErrOpen)
	b.fails(t, upstream.ErrOpen)
	c := q.wait(false, false, patience)
	q.under(2) // which go on, and are enough
	q.dialled(nil)
	c.want(t).Discard()
	q.dialled(nil)
	q.counts(0, 1)
}

func TestWaiter_HandedOverConnectionThatHasDiedIsNotUsed(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		ex := r.ex[0]
		busy := r.dial(ex)
		var got *upstream.Conn
		var err error
		var w upstream.Waiter
		on(t, ex, func() {
			w.Reset(r.up, ex, false, true)
			ex.Go(func() { // the waiter is in the queue by then
				busy.Put(ex)
				require.NoError(t, busy.far.Close())
			})
			got, err = w.Connection(patience)
		})
		require.NoError(t, err)
		if got != busy.Conn { // or else it got away with it: the end had not come yet
			far, err := r.far.Accept()
			require.NoError(t, err)
			defer far.Close()
		}
		r.discard(ex, got)
		r.counts(0, 0)
	})
}

// A dial that was under way when the upstream was taken out of service leaves nothing behind.
func TestWaiter_DialThatEndsAfterRetireIsNotPooled(t *testing.T) {
	q := newQueued(t)
	gone := q.wait(false, false, patience)
	gone.Abort()
	q.under(1)
	q.up.Retire()
	q.dialled(nil)
	q.under(0)
	q.counts(0, 0)
}

// Requests come, go away, give back and are late, all at once: none waits for ever, none has another's connection.
func TestWaiter_ManyAtOnce(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		go func() {
			for {
				c, err := r.far.Accept()
				if err != nil {
					return
				}
				go io.Copy(c, c)
			}
		}()
		var all sync.WaitGroup
		var held sync.Map
		for i := range 200 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			ex := r.ex[i%len(r.ex)]
			all.Add(1)
			ex.Post(func() {
				defer all.Done()
				w := new(upstream.Waiter)
				for k := range 20 {
					fresh, sure, goes, talks := random.IntN(4) == 0, random.IntN(2) == 0, random.IntN(3) == 0, random.IntN(2) == 0
					w.Reset(r.up, ex, fresh, sure)
					ended := ex.NewEvent() // a guard never hits later either
					ex.Go(func() {
						defer ended.Set()
						if goes {
							w.Abort()
						}
					})
					timeout := []time.Duration{patience, time.Microsecond}[k%2]
					c, err := w.Connection(timeout)
					ended.Wait()
					if err != nil {
						continue
					}
					if _, twice := held.LoadOrStore(c, true); twice {
						t.Error("a connection is in two hands")
					}
					if talks {
						io.WriteString(c, "x")
						c.In.Fill()
						c.In.Discard(c.In.Buffered())
					}
					held.Delete(c)
					c.Put(ex)
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		receive(t, done, "everybody")
		r.until(r.ex[0], "no dial is left", func() bool { u, _ := r.up.Connections(); return u == 0 })
		r.up.Retire()
		r.counts(0, 0)
	})
}
