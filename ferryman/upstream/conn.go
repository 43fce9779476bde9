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
	reused bool
	since  time.Time     // when it was put back
	born   time.Time     // when it was dialled
	share  float64       // of the upstream's largest age that is this one's
	known  *[]netip.Addr // those of the upstream's addresses among which this one's was found
}

// Reused reports whether an earlier exchange used the connection: then its failure may only mean
// that the upstream had closed it.
func (c *Conn) Reused() bool { return c.reused }

// fit reports whether the connection can carry another exchange. sure asks the kernel.
func (c *Conn) fit(now time.Time, sure bool) bool {
	age := float64(now.Sub(c.born))
	if limit := c.up.maxAge.Load(); limit > 0 && age > c.share*float64(limit) || !c.leadsThere() {
		return false
	}
	if sure {
		return c.Quiet()
	}
	return c.SeemsQuiet()
}

// leadsThere reports whether the connection is one to an address that the upstream's name has still.
func (c *Conn) leadsThere() bool {
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
	if c.In.Buffered() > 0 || c.up.retired.Load() || !c.fit(ex.Now(), false) {
		c.Discard()
		return
	}
	c.In.Release()
	c.since = ex.Now()
	taken, surplus := c.up.pools[ex.Index()].push(c)
	if taken {
		return
	}
	c.up.inUse.Add(-1)
	if surplus != nil {
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
