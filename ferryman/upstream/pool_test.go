package upstream_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// fakeExecutor runs what is posted when the test says so, and knows whether it runs.
type fakeExecutor struct {
	netloop.Executor // what the pool does not use
	index            int
	now              time.Time
	posted           []func()
	running          bool
	onDial           func() netloop.Conn
}

func (e *fakeExecutor) Index() int     { return e.index }
func (e *fakeExecutor) Now() time.Time { return e.now }
func (e *fakeExecutor) Post(f func())  { e.posted = append(e.posted, f) }

func (e *fakeExecutor) Go(f func()) { f() }

func (e *fakeExecutor) NewEvent() netloop.Event { return &fakeEvent{} }

func (e *fakeExecutor) Dial(netip.AddrPort, time.Duration, *netloop.Stop) (netloop.Conn, error) {
	return e.onDial(), nil
}

// fakeEvent is one that nobody has to wait for.
type fakeEvent struct{ set bool }

func (g *fakeEvent) Set() { g.set = true }
func (g *fakeEvent) Wait() {
	if !g.set {
		panic("it would wait for ever")
	}
}

// turn runs what was posted.
func (e *fakeExecutor) turn() {
	e.running = true
	for _, f := range e.posted {
		f()
	}
	e.posted, e.running = nil, false
}

// fakeConn belongs to an executor and notices who closes it.
type fakeConn struct {
	netloop.Conn // what the pool does not use
	t            testing.TB
	ex           *fakeExecutor
	loud         bool // something can be read
	loudOnAsking bool // something can be read, but only the kernel knows
	stray        int  // how many bytes that is; 0: it is the end
	closed       int
	onLook       func()
}

func (c *fakeConn) SeemsQuiet() bool {
	if c.onLook != nil {
		c.onLook()
	}
	return !c.loud
}

func (c *fakeConn) Quiet() bool { return !c.loud && !c.loudOnAsking }

func (c *fakeConn) SetReadDeadline(time.Time) error { return nil }

func (c *fakeConn) Read(b []byte) (int, error) {
	require.True(c.t, c.loud || c.loudOnAsking, "it would block")
	return min(c.stray, len(b)), nil
}

func (c *fakeConn) Close() error {
	c.closed++
	require.True(c.t, c.ex.running, "closed by another than its executor")
	return nil
}

// fakes is an upstream with fake executors.
type fakes struct {
	t  testing.TB
	up *upstream.Upstream
	ex []*fakeExecutor
}

func newFakes(t testing.TB, executors int) *fakes {
	f := &fakes{t: t, up: upstream.New("127.0.0.1:80", executors, breakerConfig, dial.New(dial.Options{}))}
	for i := range executors {
		f.ex = append(f.ex, &fakeExecutor{index: i, now: time.Unix(1_000_000, 0)})
	}
	return f
}

// on runs f as if it were a coroutine of executor i.
func (f *fakes) on(i int, do func(ex *fakeExecutor)) {
	ex := f.ex[i]
	ex.running = true
	do(ex)
	ex.running = false
}

func (f *fakes) dial(i int) (c *upstream.Conn, socket *fakeConn) {
	socket = &fakeConn{t: f.t, ex: f.ex[i]}
	f.ex[i].onDial = func() netloop.Conn { return socket }
	f.on(i, func(ex *fakeExecutor) {
		var err error
		c, err = connect(f.up, ex)
		require.NoError(f.t, err)
	})
	return c, socket
}

func (f *fakes) pooled(i int) *fakeConn {
	c, socket := f.dial(i)
	f.on(i, func(ex *fakeExecutor) { c.Put(ex) })
	return socket
}

func (f *fakes) counts(inUse, idle int) {
	f.t.Helper()
	u, i := f.up.Connections()
	require.Equal(f.t, [2]int{inUse, idle}, [2]int{u, i}, "in use and idle")
}

func TestRetire_ClosesOnTheExecutorOfEachPool(t *testing.T) {
	f := newFakes(t, 4)
	a, b := f.pooled(1), f.pooled(3)
	f.counts(0, 2)
	f.up.Retire()
	require.Zero(t, a.closed+b.closed, "not by the caller")
	require.Empty(t, f.ex[0].posted, "nothing is there to be done")
	require.Empty(t, f.ex[2].posted)
	f.ex[3].turn()
	require.Equal(t, [2]int{0, 1}, [2]int{a.closed, b.closed})
	f.counts(0, 1)
	f.ex[1].turn()
	require.Equal(t, [2]int{1, 1}, [2]int{a.closed, b.closed})
	f.counts(0, 0)
	f.up.Retire()
	f.ex[1].turn()
	require.Equal(t, 1, a.closed, "once is enough")
}

func TestRetire_BetweenTheLookAndThePush(t *testing.T) {
	f := newFakes(t, 2)
	c, socket := f.dial(1)
	socket.onLook = func() {
		socket.onLook = nil
		f.up.Retire() // by another goroutine, at the worst moment
	}
	f.on(1, func(ex *fakeExecutor) { c.Put(ex) })
	f.ex[1].turn()
	require.Equal(t, 1, socket.closed)
	f.counts(0, 0)
	f.on(1, func(ex *fakeExecutor) { require.Nil(t, f.up.Idle(ex, false)) })
}

func TestRetire_BeforePut(t *testing.T) {
	f := newFakes(t, 1)
	c, socket := f.dial(0)
	f.up.Retire()
	f.on(0, func(ex *fakeExecutor) { c.Put(ex) })
	require.Equal(t, 1, socket.closed)
	f.counts(0, 0)
}

func TestPrune_ByAge(t *testing.T) {
	f := newFakes(t, 2)
	start := f.ex[1].now
	var sockets []*fakeConn
	for i := range 5 {
		f.ex[1].now = start.Add(time.Duration(i) * time.Second)
		sockets = append(sockets, f.pooled(1))
	}
	sockets[3].loud = true
	f.up.Prune(start.Add(2 * time.Second))
	f.counts(0, 5)
	f.ex[1].turn()
	var closed []int
	for _, s := range sockets {
		closed = append(closed, s.closed)
	}
	require.Equal(t, []int{1, 1, 0, 1, 0}, closed, "older than the moment, or disturbed")
	f.counts(0, 2)
	f.on(1, func(ex *fakeExecutor) {
		require.Same(t, netloop.Conn(sockets[4]), f.up.Idle(ex, false).Conn, "the order stays")
		require.Same(t, netloop.Conn(sockets[2]), f.up.Idle(ex, false).Conn)
		require.Nil(t, f.up.Idle(ex, false))
	})
}

func TestIdle_AsksTheKernelOnlyWhereItMustBeSure(t *testing.T) {
	f := newFakes(t, 1)
	below, above := f.pooled(0), f.pooled(0)
	above.loudOnAsking = true
	f.on(0, func(ex *fakeExecutor) {
		c := f.up.Idle(ex, false)
		require.Same(t, netloop.Conn(above), c.Conn)
		c.Put(ex)
		require.Same(t, netloop.Conn(below), f.up.Idle(ex, true).Conn)
	})
	require.Equal(t, 1, above.closed)
	require.Zero(t, below.closed)
	f.counts(1, 0)
}

func TestIdle_ClosesEveryDeadOneOnItsWay(t *testing.T) {
	f := newFakes(t, 1)
	var sockets []*fakeConn
	for range 10 {
		s := f.pooled(0)
		sockets = append(sockets, s)
	}
	for _, s := range sockets {
		s.loud = true
	}
	f.on(0, func(ex *fakeExecutor) { require.Nil(t, f.up.Idle(ex, false)) })
	for _, s := range sockets {
		require.Equal(t, 1, s.closed)
	}
	f.counts(0, 0)
}

func TestPut_SurplusIsTheOldest(t *testing.T) {
	f := newFakes(t, 1)
	first, second := f.pooled(0), f.pooled(0)
	for range upstream.MaxIdle - 2 {
		f.pooled(0)
	}
	require.Zero(t, first.closed)
	f.pooled(0)
	require.Equal(t, 1, first.closed)
	f.pooled(0)
	require.Equal(t, 1, second.closed)
	f.counts(0, upstream.MaxIdle)
}

func TestPool_DoesNotAllocate(t *testing.T) {
	f := newFakes(t, 1)
	f.pooled(0)
	f.pooled(0)
	ex := f.ex[0]
	ex.running = true
	require.Zero(t, testing.AllocsPerRun(100, func() {
		a := f.up.Idle(ex, true)
		b := f.up.Idle(ex, false)
		b.Put(ex)
		a.Put(ex)
	}))
}
