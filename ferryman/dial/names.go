package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

const (
	// rememberedFor is how long an answer holds, and failedFor how long the failure to get one does.
	rememberedFor, failedFor = 5 * time.Second, time.Second
	// queryLimit ends a query that nobody would wait for any more.
	queryLimit = 10 * time.Second
)

// names remembers what names resolve to, and asks once for all who want to know.
type names struct {
	resolver *net.Resolver
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
	queries  sync.WaitGroup

	mu    sync.Mutex // guards what follows, and every answer until it is there
	known map[string]*answer
}

// answer is a query, and what came of it: once it is there it does not change.
type answer struct {
	names   *names
	host    string
	before  *answer // what still holds if the query fails; nil once the answer is there
	there   bool
	addrs   []netip.Addr // in the order to try them
	err     error
	until   time.Time
	waiting []func() // wakes who waits
}

// of returns the answer for a host that holds now, or one that is under way.
func (n *names) of(host string) *answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	a := n.known[host]
	if a != nil && (!a.there || now.Before(a.until)) {
		return a
	}
	for other, old := range n.known { // of upstreams that a reload has removed
		if old.there && !now.Before(old.until) {
			delete(n.known, other)
		}
	}
	return n.askLocked(host, nil)
}

// forget has the next one who wants to know ask again.
func (n *names) forget(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.known[host]; a != nil && a.there {
		n.askLocked(host, a)
	}
}

func (n *names) askLocked(host string, before *answer) *answer {
	a := &answer{names: n, host: host, before: before}
	if n.ctx.Err() != nil {
		a.there, a.err = true, net.ErrClosed
		return a
	}
	n.known[host] = a
	n.queries.Go(a.ask)
	return a
}

// close ends all queries.
func (n *names) close() {
	n.mu.Lock()
	n.cancel()
	n.mu.Unlock()
	n.queries.Wait()
}

// ask is the query. It runs on a goroutine of its own, for the system's resolver blocks.
func (a *answer) ask() {
	ctx, cancel := context.WithTimeout(a.names.ctx, queryLimit)
	defer cancel()
	addrs, err := a.names.resolver.LookupNetIP(ctx, "ip", a.host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no address", Name: a.host, IsNotFound: true}
	}
	for i, addr := range addrs {
		addrs[i] = usable(addr)
	}
	a.names.mu.Lock()
	now := time.Now()
	switch {
	case err == nil:
		a.addrs, a.until = interleave(addrs), now.Add(rememberedFor)
	case a.before != nil && a.before.err == nil && now.Before(a.before.until):
		a.addrs, a.until = a.before.addrs, a.before.until
	default:
		a.err, a.until = err, now.Add(failedFor)
	}
	a.there, a.before = true, nil
	waiting := a.waiting
	a.waiting = nil
	a.names.mu.Unlock()
	for _, wake := range waiting {
		wake()
	}
}

// usable is an address as executors take it: IPv4 as such, and a zone by its number.
func usable(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Zone() != "" {
		if i, err := net.InterfaceByName(a.Zone()); err == nil {
			return a.WithZone(strconv.Itoa(i.Index))
		}
	}
	return a
}

// wait waits for the answer.
func (a *answer) wait(ex netloop.Executor, timeout time.Duration, stop *netloop.Stop) ([]netip.Addr, error) {
	a.names.mu.Lock()
	if a.there {
		a.names.mu.Unlock()
		return a.addrs, a.err
	}
	event := ex.NewEvent()
	wake := func() { ex.Post(event.Set) }
	a.waiting = append(a.waiting, wake)
	a.names.mu.Unlock()
	if !stop.Aim(wake) {
		return nil, net.ErrClosed
	}
	if timeout > 0 {
		defer netloop.After(timeout, wake).Stop()
	}
	event.Wait()
	stopped := !stop.Aim(nil)
	a.names.mu.Lock()
	defer a.names.mu.Unlock()
	switch {
	case a.there:
		return a.addrs, a.err
	case stopped:
		return nil, net.ErrClosed
	}
	return nil, fmt.Errorf("resolve %s: %w", a.host, os.ErrDeadlineExceeded)
}
