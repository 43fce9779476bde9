package engine

import "github.com/Bunty9/ferryman/loadtest/pacer"

// lane is a queue of requests, which are numbers only, and the connections of one loop that serve
// it. A connection is idle, down or at work, never two of them.
type lane struct {
	pacer.Lane
	target  *target
	next    int64 // the lane's next request to be sent
	waiting int64 // how many are due and not sent
	idle    ring
	down    []*conn // not connected; dialled when nothing is idle
}

// take removes a connection that can serve a request: the one that has been idle for longest, so
// that load spreads evenly, or one that has to be dialled; nil if all are at work.
func (l *lane) take() *conn {
	if c := l.idle.pop(); c != nil {
		return c
	}
	n := len(l.down)
	if n == 0 {
		return nil
	}
	c := l.down[n-1]
	l.down = l.down[:n-1]
	return c
}

// ring is a queue of connections with a fixed capacity.
type ring struct {
	items   []*conn
	head, n int
}

func (r *ring) push(c *conn) {
	r.items[(r.head+r.n)%len(r.items)] = c
	r.n++
}

func (r *ring) pop() *conn {
	if r.n == 0 {
		return nil
	}
	c := r.items[r.head]
	r.head = (r.head + 1) % len(r.items)
	r.n--
	return c
}

// remove takes c out of the middle; the others keep their order.
func (r *ring) remove(c *conn) {
	for range r.n {
		if x := r.pop(); x != c {
			r.push(x)
		}
	}
}
