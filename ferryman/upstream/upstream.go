package upstream

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/pool"
)

// Upstream is one host:port. It outlives the configurations that name it.
type Upstream struct {
	addr    string
	dialer  *dial.Dialer
	target  dial.Target // addr, parsed
	breaker *breaker.Breaker
	pool    *pool.Pool[*Conn]
	inUse   atomic.Int64
	retired atomic.Bool // once set, no connection is pooled any more
	maxAge  atomic.Int64
	addrs   atomic.Pointer[[]netip.Addr] // of its name, as connections are held to them
	stray   atomic.Int64                 // when bytes that nobody asked for were found on an idle connection; 0: never
}

// New returns an upstream without connections for executors with an index under executors.
func New(addr string, executors int, c breaker.Config, d *dial.Dialer) *Upstream {
	u := &Upstream{addr: addr, dialer: d, target: dial.Parse(addr), breaker: breaker.New(c)}
	u.pool = pool.New(executors, u.open, func(ex netloop.Executor, c *Conn) { c.Put(ex) })
	return u
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
	return int(u.inUse.Load()), u.pool.Idle()
}

// Idle returns a pooled connection that is fit for use, or nil. sure: the kernel
// is asked, for requests that cannot be retried.
func (u *Upstream) Idle(ex netloop.Executor, sure bool) *Conn {
	for {
		c, ok := u.pool.Pop(ex)
		if !ok {
			return nil
		}
		if c.fit(ex.Now(), sure) {
			u.inUse.Add(1)
			c.doubtful = false
			return c
		}
		c.noteStray(ex.Now())
		c.Conn.Close()
	}
}

// open dials.
func (u *Upstream) open(ex netloop.Executor, timeout time.Duration) (*Conn, error) {
	known := u.addrs.Load() // what the name has now is no older
	socket, err := u.dialer.Dial(ex, u.target, timeout, nil)
	if err != nil {
		return nil, err
	}
	u.inUse.Add(1)
	c := &Conn{Conn: socket, up: u, born: ex.Now(), known: known, share: 0.9 + 0.2*rand.Float64()}
	c.In.Reset(socket)
	return c, nil
}

// DialContext opens a connection that is the caller's own, such as a check's, the way requests go, and follows a name
// that has moved. ex must be an executor of goroutines.
func (u *Upstream) DialContext(ctx context.Context, ex netloop.Executor) (net.Conn, error) {
	defer u.follow(ex)
	return u.dialer.DialContext(ctx, ex, u.target)
}

// follow retires the connections of a name none of whose addresses is left: an answer may hold some of many only.
func (u *Upstream) follow(ex netloop.Executor) {
	known := u.addrs.Load()
	addrs, err := u.dialer.Resolve(ex, u.target, time.Second, nil) // what the dial has found
	has := func(a netip.Addr) bool { return slices.Contains(*known, a) }
	if err == nil && (known == nil || !slices.ContainsFunc(addrs, has)) {
		u.addrs.Store(&addrs)
		u.Prune(time.Time{})
	}
}

// SetMaxAge says how long after its dial, give or take a tenth, a connection takes another exchange; 0 is no limit.
func (u *Upstream) SetMaxAge(d time.Duration) { u.maxAge.Store(int64(d)) }

// Renew asks within timeout which addresses the upstream's name has now. Connections to others take no exchange any more.
func (u *Upstream) Renew(ex netloop.Executor, timeout time.Duration) error {
	if !u.target.IsName() {
		return nil
	}
	addrs, err := u.dialer.ResolveAnew(ex, u.target, timeout)
	if err == nil {
		u.addrs.Store(&addrs)
		u.Prune(time.Time{})
	}
	return err
}

// Retire closes the idle connections and lets no other be pooled. Exchanges go on.
func (u *Upstream) Retire() {
	u.retired.Store(true)
	u.pool.Filter(func(*Conn, time.Time) bool { return false })
}

// FailWaiters ends the waits for a connection with ErrOpen. Call it when the circuit has opened.
func (u *Upstream) FailWaiters() { u.pool.FailWaiters(ErrOpen) }

// Prune closes the connections that have been idle since before a moment or are not fit for use any more: closed by the
// upstream, too old, to an address that its name has lost. Call it now and then, from any goroutine.
func (u *Upstream) Prune(before time.Time) {
	u.pool.Filter(func(c *Conn, now time.Time) bool { return !c.since.Before(before) && c.fit(now, false) })
}
