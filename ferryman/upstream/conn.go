package upstream

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Conn is a connection to an upstream that one exchange uses at a time.
type Conn struct {
	netloop.Conn
	In     h1.Reader
	up     *Upstream
	reused bool          // it was in the pool
	since  time.Time     // when it was put back
	born   time.Time     // when it was dialled
	share  float64       // this connection's maximum age, as a factor of the upstream's: 0.9 to 1.1
	known  *[]netip.Addr // the list of addresses that this one's was last found in

	doubtful bool // the last response had no body by rule (HEAD, 204, 304) and may have one all the same
}

// Reused reports whether an earlier exchange used the connection: then its failure may only mean
// that the upstream had closed it.
func (c *Conn) Reused() bool { return c.reused }

// expired reports whether the connection takes no other exchange, whatever can be read from it: it is too old, or
// leads to an address that the upstream's name has lost.
func (c *Conn) expired(now time.Time) bool {
	age, limit := float64(now.Sub(c.born)), c.up.maxAge.Load()
	return limit > 0 && age > c.share*float64(limit) || !c.addrCurrent()
}

// fit reports whether the connection can carry another exchange. sure asks the kernel.
func (c *Conn) fit(now time.Time, sure bool) bool {
	if c.expired(now) {
		return false
	}
	if sure || c.doubtful {
		return c.Quiet()
	}
	return c.SeemsQuiet()
}

// addrCurrent reports whether the connection is one to an address that the upstream's name has still.
func (c *Conn) addrCurrent() bool {
	addrs := c.up.addrs.Load()
	if addrs == c.known {
		return true
	}
	to, _ := c.RemoteAddr().(*net.TCPAddr)
	same := func(a netip.Addr) bool { return a.WithZone("") == to.AddrPort().Addr().Unmap().WithZone("") }
	if to == nil || !slices.ContainsFunc(*addrs, same) {
		return false
	}
	c.known = addrs
	return true
}

// Put gives the connection back after a complete exchange. Bytes that nobody asked for close it.
func (c *Conn) Put(ex netloop.Executor) {
	c.since = ex.Now()
	if c.In.Buffered() > 0 || !c.SeemsQuiet() {
		c.noteStray(c.since)
		c.Discard()
		return
	}
	if c.up.retired.Load() || c.expired(c.since) || c.doubtful && c.up.strays(c.since) {
		c.Discard()
		return
	}
	c.In.Release()
	c.reused = true
	if c.up.pool.Push(ex, c) { // somebody uses it already
		return
	}
	c.up.inUse.Add(-1)
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
