package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Options are the hooks of a Dialer. The zero value is usable. Hooks must not block.
type Options struct {
	// Resolver looks names up; nil: net.DefaultResolver.
	Resolver *net.Resolver
	// ShortageBegun is called when dials begin to fail for want of a resource ("descriptors", "memory" or "ports"),
	// ShortageOver when they work again.
	ShortageBegun func(resource string, err error)
	ShortageOver  func(resource string)
}

// Dialer dials for any number of executors. New makes it.
type Dialer struct {
	names     names
	shortages shortages
}

// New returns a dialer that remembers nothing yet.
func New(o Options) *Dialer {
	d := &Dialer{shortages: shortages{o: o}}
	d.names.known = make(map[string]*answer)
	d.names.ctx, d.names.cancel = context.WithCancel(context.Background())
	if d.names.resolver = o.Resolver; o.Resolver == nil {
		d.names.resolver = net.DefaultResolver
	}
	return d
}

// Close ends what waits for a name, at once, and waits for the queries. Connections are not touched.
func (d *Dialer) Close() { d.names.close() }

// Target is where to dial: an address, or a name with a port.
type Target struct {
	literal netip.AddrPort // invalid for a name
	text    string
	host    string
	port    uint16
}

// Parse reads a "host:port". What is none can be dialled, and is an error then.
func Parse(text string) Target {
	t := Target{text: text}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		t.literal = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		return t
	}
	host, port, _ := net.SplitHostPort(text)
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		t.host, t.port = host, uint16(n)
	}
	return t
}

// IsName reports whether the target's addresses are found by its name.
func (t Target) IsName() bool { return !t.literal.IsValid() }

// Dial connects ex to a target within timeout, lookups included; 0 or less is no limit but the system's. stop ends
// it early; nil: nobody does. Where the process was short of something the error is ErrShortage.
func (d *Dialer) Dial(ex netloop.Executor, to Target, timeout time.Duration, stop *netloop.Stop) (netloop.Conn, error) {
	var c netloop.Conn
	var err error
	if to.literal.IsValid() {
		c, err = ex.Dial(to.literal, timeout, stop)
	} else {
		c, err = d.dialName(ex, to, timeout, stop)
	}
	if err != nil {
		return nil, d.shortages.tell(err)
	}
	d.shortages.worked()
	return c, nil
}

// dialName shares the time among the lookup and all addresses.
func (d *Dialer) dialName(ex netloop.Executor, to Target, timeout time.Duration, stop *netloop.Stop) (netloop.Conn, error) {
	left := budget{ex, time.Time{}}
	if timeout > 0 {
		left.until = ex.Now().Add(timeout)
	}
	addrs, err := d.Resolve(ex, to, timeout, stop)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	if len(addrs) > 1 {
		return (&race{ex: ex, port: to.port, left: left, addrs: addrs}).run(stop)
	}
	rest, err := left.get()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return ex.Dial(netip.AddrPortFrom(addrs[0], to.port), rest, stop)
}

// budget is the time that is left to a dial.
type budget struct {
	ex    netloop.Executor
	until time.Time // zero: no limit
}

func (b budget) get() (time.Duration, error) {
	if b.until.IsZero() {
		return 0, nil
	}
	left := b.until.Sub(b.ex.Now())
	if left <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return left, nil
}

// Resolve returns the addresses of a target in the order to try them, within timeout; 0 or less is no limit but the
// system's.
func (d *Dialer) Resolve(ex netloop.Executor, to Target, timeout time.Duration, stop *netloop.Stop) ([]netip.Addr, error) {
	switch {
	case to.literal.IsValid():
		return []netip.Addr{to.literal.Addr()}, nil
	case to.port == 0 || to.host == "":
		return nil, &net.AddrError{Err: "not a host:port", Addr: to.text}
	}
	return d.names.of(to.host).wait(ex, timeout, stop)
}

// ResolveAnew is Resolve without a look at what is remembered. What fails leaves that as it was.
func (d *Dialer) ResolveAnew(ex netloop.Executor, to Target, timeout time.Duration) ([]netip.Addr, error) {
	d.names.forget(to.host)
	return d.Resolve(ex, to, timeout, nil)
}

// DialContext is Dial within the deadline of a context, and until it is cancelled. ex must be an executor of goroutines.
func (d *Dialer) DialContext(ctx context.Context, ex netloop.Executor, to Target) (net.Conn, error) {
	timeout := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		if timeout = time.Until(deadline); timeout <= 0 {
			return nil, context.DeadlineExceeded
		}
	}
	var stop netloop.Stop
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) { // the deadline is for Dial to keep, which looks at the socket first
			stop.Abort()
		}
	})()
	return d.Dial(ex, to, timeout, &stop)
}
