package dial

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// headStart is for how long an address is tried before the next one is tried, too (RFC 8305 section 5).
const headStart = 250 * time.Millisecond

// interleave alternates between the families, so that the second try is one of the other (RFC 8305 section 4).
// Within a family the order stays.
func interleave(addrs []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	mixed := make([]netip.Addr, 0, len(addrs))
	for len(first) > 0 {
		mixed = append(mixed, first[0])
		first, second = second, first[1:]
		if len(first) == 0 {
			first, second = second, nil
		}
	}
	return mixed
}

// race is a dial of several addresses. Each is tried on a coroutine of its own; one more waits for the first connection.
type race struct {
	ex   netloop.Executor
	port uint16
	left budget

	mu      sync.Mutex   // guards what follows
	addrs   []netip.Addr // that are yet to be tried
	running int          // tries
	won     netloop.Conn
	err     error // why there is no connection: a shortage, or else the first failure
	over    bool  // nobody wants a connection any more
	stops   []*netloop.Stop
	news    netloop.Event // set when a try has ended
}

// run tries one address after another: the next one at once when a try has failed, and after a while in any case.
func (r *race) run(stop *netloop.Stop) (netloop.Conn, error) {
	if !stop.Aim(r.Abort) {
		return nil, net.ErrClosed
	}
	defer stop.Aim(nil)
	defer r.Abort() // who has lost
	for {
		news, patience := r.step()
		switch {
		case news == nil:
			return r.outcome()
		case patience > 0:
			timer := time.AfterFunc(patience, func() { r.ex.Post(news.Set) })
			news.Wait()
			timer.Stop()
		default:
			news.Wait()
		}
	}
}

// step begins the next try, if there is one. It returns what to wait for, nil if it is all over, and for how long; 0:
// without limit.
func (r *race) step() (news netloop.Event, patience time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left, late := r.left.get()
	if late != nil && len(r.addrs) > 0 {
		r.addrs = nil
		r.failedLocked(&net.OpError{Op: "dial", Net: "tcp", Err: late})
	}
	if r.won != nil || r.over || r.running == 0 && len(r.addrs) == 0 {
		return nil, 0
	}
	r.news = r.ex.NewEvent()
	if len(r.addrs) > 0 {
		to, stop := netip.AddrPortFrom(r.addrs[0], r.port), new(netloop.Stop)
		r.addrs, r.stops = r.addrs[1:], append(r.stops, stop)
		r.running++
		r.ex.Go(func() { r.try(to, left, stop) })
	}
	switch {
	case len(r.addrs) == 0:
		return r.news, 0
	case left == 0:
		return r.news, headStart
	}
	return r.news, min(headStart, left/time.Duration(len(r.addrs)+1))
}

// try dials one address.
func (r *race) try(to netip.AddrPort, timeout time.Duration, stop *netloop.Stop) {
	c, err := r.ex.Dial(to, timeout, stop)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	switch {
	case err != nil:
		r.failedLocked(err)
	case r.over || r.won != nil:
		c.Close()
	default:
		r.won = c
	}
	r.news.Set()
}

func (r *race) failedLocked(err error) {
	if r.err == nil || shortageOf(err) != "" {
		r.err = err
	}
}

func (r *race) outcome() (netloop.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.won != nil:
		return r.won, nil
	case r.over:
		return nil, net.ErrClosed
	}
	return nil, r.err
}

// Abort ends every try.
func (r *race) Abort() {
	r.mu.Lock()
	r.over = true
	stops := r.stops
	r.stops = nil
	r.mu.Unlock()
	for _, s := range stops {
		s.Abort()
	}
}
