package pool

import (
	"errors"
	"io"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// MaxDials bounds the dials in progress over all executors, unless leastDials for each is more. It is half of a backlog of 128, which many
// servers listen with: where a backlog is full the kernel drops SYNs, each of which costs a second, and dials time out.
// leastDials is the share of each executor at least: a SYN that was lost on its way must not hold up all.
const MaxDials, leastDials = 64, 2

// enter puts w in the queue. dials: w is to begin another dial.
func (s *stack[C]) enter(w *Waiter[C]) (event netloop.Event, dials bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.aborted {
		return nil, false, ErrAborted
	}
	s.ex = w.ex
	w.event = w.ex.NewEvent()
	s.waiting.add(w)
	return w.event, s.needsDial(), nil
}

// needsDial reports whether there are fewer dials than waiters, and may be more. If so, another one counts from now on.
func (s *stack[C]) needsDial() bool {
	if s.dials >= s.waiting.n || s.dials >= s.maxDials {
		return false
	}
	s.dials++
	return true
}

var errPanic = errors.New("the dial panicked")

// dialFor opens a connection for the waiter that has waited longest by then. It is a coroutine of its own: the request that
// began it may go away, and others take what comes of it.
func (p *Pool[C]) dialFor(s *stack[C], ex netloop.Executor, timeout time.Duration) {
	var c C
	err := errPanic
	defer func() {
		taken, another := s.dialled(c, err)
		if another {
			ex.Go(func() { p.dialFor(s, ex, timeout) })
		}
		if err == nil && !taken {
			p.spare(ex, c)
		}
	}()
	c, err = p.dial(ex, timeout)
}

// dialled gives the outcome of a dial away. another: there is to be another dial.
func (s *stack[C]) dialled(c C, err error) (taken, another bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting.first
	if w != nil {
		s.wake(w, c, err)
	}
	s.dials--
	return w != nil, s.needsDial()
}

// wake ends the wait of w.
func (s *stack[C]) wake(w *Waiter[C], c C, err error) {
	s.waiting.remove(w)
	w.conn, w.err = c, err
	w.event.Set()
	w.event = nil
}

// late ends the wait of w by its time-out, unless it is over: w may be reused by then, so the event must be the same.
func (s *stack[C]) late(w *Waiter[C], event netloop.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := s.waiting.first; x != nil; x = x.next {
		if x == w && x.event == event {
			s.fail(w, ErrBusy)
			return
		}
	}
}

func (s *stack[C]) fail(w *Waiter[C], err error) {
	var none C
	s.wake(w, none, err)
}

func (s *stack[C]) failAll(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.waiting.first != nil {
		s.fail(s.waiting.first, err)
	}
}

func (s *stack[C]) abort(w *Waiter[C]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.aborted = true
	if w.event != nil {
		s.fail(w, ErrAborted)
	}
}

// outcome is what w has got. unwanted: its request does not need it any more.
func (s *stack[C]) outcome(w *Waiter[C]) (c C, unwanted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none C
	c, w.conn = w.conn, none
	return c, w.aborted, w.err
}

// queue is a list of waiters, the first of which has waited for longest.
type queue[C io.Closer] struct {
	first, last *Waiter[C]
	n           int
}

func (q *queue[C]) add(w *Waiter[C]) {
	q.n++
	if w.prev = q.last; w.prev == nil {
		q.first = w
	} else {
		w.prev.next = w
	}
	q.last = w
}

func (q *queue[C]) remove(w *Waiter[C]) {
	q.n--
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}
