package upstream

import (
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Upstream is one host:port. It outlives the configurations that name it.
type Upstream struct {
	addr    string
	breaker *breaker.Breaker
	pools   []pool // by executor index
	inUse   atomic.Int64
	retired atomic.Bool  // once set, no connection is pooled any more
	stray   atomic.Int64 // when bytes that nobody asked for were found on an idle connection; 0: never
}

// New returns an upstream without connections for executors with an index under executors.
func New(addr string, executors int, c breaker.Config) *Upstream {
	return &Upstream{addr: addr, breaker: breaker.New(c), pools: make([]pool, executors)}
}

// Addr is the host:port, as configured.
func (u *Upstream) Addr() string { return u.addr }

// Breaker is the circuit breaker that guards the upstream.
func (u *Upstream) Breaker() *breaker.Breaker { return u.breaker }

// State is the circuit's state as a number: 0 closed, 1 open, 2 half-open.
func (u *Upstream) State() int { return int(u.breaker.State()) }

// Transitions counts the changes into a state.
func (u *Upstream) Transitions(to int) uint64 { return u.breaker.Transitions(breaker.State(to)) }

// Connections counts the connections that carry an exchange and those that wait in the pools.
func (u *Upstream) Connections() (inUse, idle int) {
	for i := range u.pools {
		idle += int(u.pools[i].size.Load())
	}
	return int(u.inUse.Load()), idle
}

// Idle returns a pooled connection that is fit for use, or nil. sure asks the kernel; where the
// exchange can be repeated, what the executor knows is enough.
func (u *Upstream) Idle(ex netloop.Executor, sure bool) *Conn {
	for {
		c := u.pools[ex.Index()].pop()
		if c == nil {
			return nil
		}
		ask := sure || c.doubtful
		if ask && c.Quiet() || !ask && c.SeemsQuiet() {
			u.inUse.Add(1)
			c.reused, c.doubtful = true, false
			return c
		}
		c.noteStray(ex.Now())
		c.Conn.Close()
	}
}

// Dial opens a new connection within timeout.
func (u *Upstream) Dial(ex netloop.Executor, timeout time.Duration) (*Conn, error) {
	socket, err := ex.Dial(u.addr, timeout)
	if err != nil {
		return nil, err
	}
	u.inUse.Add(1)
	c := &Conn{Conn: socket, up: u}
	c.In.Reset(socket)
	return c, nil
}

// Retire closes the idle connections and lets no other be pooled. Exchanges go on.
func (u *Upstream) Retire() {
	u.retired.Store(true)
	u.each(func(p *pool) { p.closeBelow(time.Time{}, true) })
}

// Prune closes the connections that have been idle since before a moment or were closed by the
// upstream. Call it now and then, from any goroutine.
func (u *Upstream) Prune(before time.Time) {
	u.each(func(p *pool) { p.closeBelow(before, false) })
}

// each runs f for every pool in use, on the executor whose connections it holds.
func (u *Upstream) each(f func(*pool)) {
	for i := range u.pools {
		p := &u.pools[i]
		if ex := p.executor(); ex != nil {
			ex.Post(func() { f(p) })
		}
	}
}

// Conn is a connection to an upstream that one exchange uses at a time.
type Conn struct {
	netloop.Conn
	In     h1.Reader
	up     *Upstream
	reused bool
	since  time.Time // when it was put back

	doubtful bool // the last answer had no body by rule: bytes of one may follow all the same
}

// Reused reports whether an earlier exchange used the connection: then its failure may only mean
// that the upstream had closed it.
func (c *Conn) Reused() bool { return c.reused }

// Put gives the connection back after a complete exchange. Bytes that nobody asked for close it.
func (c *Conn) Put(ex netloop.Executor) {
	c.since = ex.Now()
	if c.In.Buffered() > 0 || !c.SeemsQuiet() {
		c.noteStray(c.since)
		c.Discard()
		return
	}
	if c.up.retired.Load() || c.doubtful && c.up.strays(c.since) {
		c.Discard()
		return
	}
	c.In.Release()
	c.up.inUse.Add(-1)
	if surplus := c.up.pools[ex.Index()].push(ex, c); surplus != nil {
		surplus.Conn.Close()
	}
	if c.up.retired.Load() { // retired between the look and the push
		c.up.Retire()
	}
}

// Discard closes the connection.
func (c *Conn) Discard() {
	c.In.Release()
	c.up.inUse.Add(-1)
	c.Conn.Close()
}
