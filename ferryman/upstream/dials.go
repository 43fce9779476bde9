package upstream

import (
	"errors"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// maxDials bounds the dials to one upstream that are under way, of all executors together. It is half of a backlog of
// 128, which many servers listen with: where a backlog is full the kernel drops SYNs, each of which costs a second, and
// dials time out. leastDials is the share of each executor at least: a SYN that was lost on its way must not hold up all.
const maxDials, leastDials = 64, 2

// enter puts w in the queue. dials: w is to begin another dial.
func (p *pool) enter(w *Waiter) (event netloop.Event, dials bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.aborted {
		return nil, false, ErrAborted
	}
	p.ex = w.ex
	w.event = w.ex.NewEvent()
	p.waiting.add(w)
	return w.event, p.needsDial(), nil
}

// needsDial reports whether there are fewer dials than waiters, and may be more. If so, another one counts from now on.
func (p *pool) needsDial() bool {
	if p.dials >= p.waiting.n || p.dials >= p.maxDials {
		return false
	}
	p.dials++
	return true
}

var errPanic = errors.New("the dial panicked")

// dial opens a connection for who has waited for longest by then. It is a coroutine of its own: the request that began it
// may go away, and others take what comes of it.
func (p *pool) dial(u *Upstream, ex netloop.Executor, timeout time.Duration) {
	c, err := (*Conn)(nil), errPanic
	defer func() {
		taken, another := p.dialled(c, err)
		if another {
			ex.Go(func() { p.dial(u, ex, timeout) })
		}
		if c != nil && !taken {
			c.Put(ex)
		}
	}()
	c, err = u.open(ex, timeout)
}

// dialled gives the outcome of a dial away. another: there is to be another dial.
func (p *pool) dialled(c *Conn, err error) (taken, another bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting.first
	if w != nil {
		p.wake(w, c, err)
	}
	p.dials--
	return w != nil, p.needsDial()
}

// wake ends the wait of w.
func (p *pool) wake(w *Waiter, c *Conn, err error) {
	p.waiting.remove(w)
	w.conn, w.err = c, err
	w.event.Set()
	w.event = nil
}

// late ends the wait of w for an event, if it lasts. If not, w may have become somebody else's, and is not touched.
func (p *pool) late(w *Waiter, event netloop.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := p.waiting.first; x != nil; x = x.next {
		if x == w && x.event == event {
			p.wake(w, nil, ErrBusy)
			return
		}
	}
}

// giveUp ends all waits.
func (p *pool) giveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.waiting.first != nil {
		p.wake(p.waiting.first, nil, ErrOpen)
	}
}

func (p *pool) abort(w *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.aborted = true
	if w.event != nil {
		p.wake(w, nil, ErrAborted)
	}
}

// outcome is what w has got. What its request does not need any more is somebody else's.
func (p *pool) outcome(w *Waiter) (*Conn, error) {
	p.mu.Lock()
	c, err, unwanted := w.conn, w.err, w.aborted
	w.conn = nil
	p.mu.Unlock()
	if c != nil && unwanted {
		c.Put(w.ex)
		return nil, ErrAborted
	}
	return c, err
}
