package dial

import (
	"net/netip"
	"time"
)

const (
	HeadStart     = headStart
	RememberedFor = rememberedFor
	FailedFor     = failedFor
	Settled       = settled
)

// Age makes what is remembered, and the shortages there are, older.
func (d *Dialer) Age(by time.Duration) {
	d.names.mu.Lock()
	for _, a := range d.names.known {
		a.until = a.until.Add(-by)
	}
	d.names.mu.Unlock()
	d.shortages.mu.Lock()
	defer d.shortages.mu.Unlock()
	for i, last := range d.shortages.last {
		if !last.IsZero() {
			d.shortages.last[i] = last.Add(-by)
		}
	}
}

func Interleave(addrs []netip.Addr) []netip.Addr { return interleave(addrs) }
