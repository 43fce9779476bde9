package netloop

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// allEvents is what connections are registered for, once.
	allEvents = unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
	// yieldInterval is for how long a loop that never parks keeps its processor before it yields to other
	// goroutines, where there is no processor without a loop. Elsewhere the runtime's own time
	// slices do, and a yield would only wake a thread that finds nothing to do.
	yieldInterval = time.Millisecond
	// pollInterval is for how long coroutines that are ready run before epoll is asked for new events.
	pollInterval = 50 * time.Microsecond
)

// loop is an event loop: a goroutine that turns events of an epoll set into ready coroutines and
// runs those one after another. What has no comment is touched by that goroutine and its coroutines
// only.
//
// An iteration has three parts: take events and mark connections (no coroutine runs meanwhile, so a
// descriptor cannot be closed and used again between an event and its connection), sweep the
// deadlines if one is due, run the coroutines that were ready by then.
type loop struct {
	scheduler
	e *loopEngine
	inbox
	index int

	poller
	yielded int64 // when the loop last parked, or let other goroutines run
	polled  int64 // when it last took events

	slots    []slot
	vacant   int32 // first of the list of free slots, 0 if there is none
	sweepAt  int64 // no deadline needs attention earlier; 0: none at all
	sweptAt  int64 // the last sweep
	closing  bool
	idle     idleTime
	accepted atomic.Int32 // accepted connections here or on their way: counted by whoever accepts
	surplus  atomic.Int32 // how many of them other loops should have
}

// slot is a connection's place in its loop. They are kept together for the sweep. There are as
// many as there ever were connections at a time.
type slot struct {
	c      *loopConn
	gen    uint32 // told to epoll: an event of an earlier tenant is recognised
	next   int32  // in the list of free slots
	rd, wd int64  // deadlines, 0 if none
}

func newLoop(e *loopEngine, index int) (*loop, error) {
	l := &loop{e: e, index: index, slots: make([]slot, 1)}
	l.scheduler.o = &e.o
	l.base = time.Now()
	l.idle.base = l.base
	l.tick()
	if err := l.open(); err != nil {
		return nil, err
	}
	var err error
	if l.wakefd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
		// Edge-triggered: each write is an event, and nobody needs to read the counter.
		err = l.watch(l.wakefd, unix.EPOLLIN|unix.EPOLLET, 0)
	}
	if err != nil {
		l.poller.close()
		unix.Close(l.wakefd)
		return nil, err
	}
	return l, nil
}

func (l *loop) watch(fd int, events uint32, slot int32) error {
	ev := unix.EpollEvent{Events: events, Fd: slot, Pad: int32(l.slots[slot].gen)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// run is the loop's goroutine. A coroutine that calls runtime.Goexit ends it, whence the defer.
func (l *loop) run() {
	over := false
	defer func() {
		if over {
			l.e.ended.Done()
		} else {
			go l.run()
		}
	}()
	l.runBatch()
	for !l.closing || l.live > 0 || !l.end() {
		l.iterate()
	}
	l.release()
	over = true
}

func (l *loop) iterate() {
	l.wait()
	for i := range l.events[:l.n] {
		ev := &l.events[i]
		if ev.Fd == 0 {
			l.takePosted()
		} else if s := &l.slots[ev.Fd]; s.c != nil && s.gen == uint32(ev.Pad) {
			s.c.event(ev.Events)
		}
	}
	if l.sweepAt != 0 && l.at >= l.sweepAt {
		l.sweep()
	}
	l.batch, l.ready, l.done = l.ready, l.batch[:0], 0
	l.runBatch()
}

// wait takes the next events. It waits for the first unless there are coroutines to run.
func (l *loop) wait() {
	if len(l.ready) > 0 {
		l.tick()
		if l.n = 0; l.at-l.polled >= int64(pollInterval) {
			l.take(0)
			l.waited = false
			l.tick()
			l.polled = l.at
		}
	} else {
		l.tick()
		begun := l.at
		l.idle.begin(begun)
		l.await(&l.clock, l.sweepAt)
		l.tick()
		l.idle.end(begun, l.at)
		l.polled = l.at
		l.lasted(time.Duration(l.at - begun))
	}
	if l.waited {
		l.waited, l.yielded = false, l.at
	} else if l.at-l.yielded > int64(yieldInterval) && l.e.allActive() {
		l.yielded = l.at
		runtime.Gosched()
	}
}

// add gives c a slot and has epoll watch its descriptor.
func (l *loop) add(c *loopConn) error {
	if l.vacant == 0 {
		l.slots = append(l.slots, slot{})
		l.vacant = int32(len(l.slots) - 1)
	}
	c.slot = l.vacant
	err := l.watch(c.fd, allEvents, c.slot)
	if err == nil {
		s := &l.slots[c.slot]
		l.vacant, s.next, s.c = s.next, 0, c
	}
	return err
}

func (l *loop) remove(c *loopConn) {
	s := &l.slots[c.slot]
	*s = slot{gen: s.gen + 1, next: l.vacant}
	l.vacant = c.slot
}

func (l *loop) close() {
	l.closing = true
	for i := range l.slots {
		if c := l.slots[i].c; c != nil {
			c.Abort()
		}
	}
}

// release gives everything back: connections that no coroutine has closed, coroutines, descriptors.
func (l *loop) release() {
	for i := range l.slots {
		if c := l.slots[i].c; c != nil {
			c.Close()
		}
	}
	l.scheduler.release()
	l.poller.close()
	unix.Close(l.wakefd)
}

// Index implements Executor.
func (l *loop) Index() int { return l.index }

// Go implements Executor.
func (l *loop) Go(f func()) { l.start(nil, f) }

// Defer implements Executor: what is started is run in the next iteration.
func (l *loop) Defer(f func()) { l.start(nil, f) }

// Spend implements Executor.
func (l *loop) Spend(n int) {
	l.budget -= n
	l.yieldIfSpent()
}

// Post implements Executor.
func (l *loop) Post(f func()) { l.post(func() { l.start(nil, f) }) }
