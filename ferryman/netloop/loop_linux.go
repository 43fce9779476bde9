package netloop

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxEvents is how many events a loop takes from the kernel at once.
	maxEvents = 256
	// allEvents is what connections are registered for, once.
	allEvents = unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
	// politeness is for how long a loop that never has to wait keeps its processor before
	// other goroutines get a chance.
	politeness = time.Millisecond
	// rushGap is the time between two turns up to which a loop waits in the kernel itself, on its
	// processor, for as long at most: parking costs several system calls and wakes another thread.
	rushGap = time.Millisecond
)

// loop is an event loop: a goroutine that turns events of an epoll set into ready strands and
// runs those one after another. What has no comment is touched by that goroutine and its strands
// only.
//
// A turn has three parts: take events and mark connections (no strand runs meanwhile, so a
// descriptor cannot be closed and used again between an event and its connection), sweep the
// deadlines if one is due, run the strands that were ready by then.
type loop struct {
	scheduler
	e *loopEngine
	mail
	index int

	epoll  *os.File // its descriptor is epfd; the runtime's poller watches it
	raw    syscall.RawConn
	epfd   int
	events [maxEvents]unix.EpollEvent
	n      int                // events taken in this turn
	take   func(uintptr) bool // fills events; made once
	waited bool               // take has found nothing, so the loop waited
	inRush bool               // the last turn came soon after the one before
	polite int64              // when the loop last waited, or let other goroutines run

	slots    []slot
	vacant   int32 // first of the list of free slots, 0 if there is none
	sweepAt  int64 // no deadline needs attention earlier; 0: none at all
	sweptAt  int64 // the last sweep
	armed    int64 // the deadline of epoll's file, 0 if it has none
	closing  bool
	rest     rest
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
	l.rest.base = l.base
	l.tick()
	var err error
	if l.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	unix.SetNonblock(l.epfd, true) // so that NewFile gives it to the runtime's poller
	l.epoll = os.NewFile(uintptr(l.epfd), "epoll")
	if l.raw, err = l.epoll.SyscallConn(); err == nil {
		l.wakefd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	}
	if err == nil {
		// Edge-triggered: each write is an event, and nobody needs to read the counter.
		err = l.watch(l.wakefd, unix.EPOLLIN|unix.EPOLLET, 0)
	}
	if err != nil {
		l.epoll.Close()
		unix.Close(l.wakefd)
		return nil, err
	}
	l.take = func(fd uintptr) bool {
		l.n = epollWait(int(fd), l.events[:], 0)
		l.waited = l.waited || l.n == 0
		return l.n > 0
	}
	return l, nil
}

func (l *loop) watch(fd int, events uint32, slot int32) error {
	ev := unix.EpollEvent{Events: events, Fd: slot, Pad: int32(l.slots[slot].gen)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// run is the loop's goroutine. A strand that calls runtime.Goexit ends it, whence the defer.
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
		l.turn()
	}
	l.release()
	over = true
}

func (l *loop) turn() {
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

// wait takes the next events. It waits for the first unless there are strands to run.
func (l *loop) wait() {
	if len(l.ready) > 0 {
		l.take(uintptr(l.epfd))
		l.waited = false
		l.tick()
	} else {
		l.tick()
		l.rest.begin(l.at)
		l.await()
		begun := l.at
		l.tick()
		l.inRush = l.at-begun < int64(rushGap)
		l.rest.end(begun, l.at)
	}
	if l.waited {
		l.waited, l.polite = false, l.at
	} else if l.at-l.polite > int64(politeness) {
		l.polite = l.at
		runtime.Gosched()
	}
}

// await waits for events.
func (l *loop) await() {
	if !l.inRush || !l.rush() {
		if l.sweepAt != 0 && (l.armed == 0 || l.sweepAt < l.armed) {
			l.armed = l.sweepAt
			l.epoll.SetReadDeadline(l.base.Add(time.Duration(l.armed)))
		}
		l.n = 0
		// Through the runtime's poller: telling the scheduler of a call that blocks makes it take
		// the processor away and give it back, which costs more than the extra wait in between.
		if l.raw.Read(l.take) != nil { // the deadline, but what is there comes first
			l.armed = 0
			l.epoll.SetReadDeadline(time.Time{})
			l.take(uintptr(l.epfd))
		}
	}
}

// rush waits for events that are likely to come soon. It returns false if none came.
func (l *loop) rush() bool {
	l.n = epollWait(l.epfd, l.events[:], uintptr(rushGap/time.Millisecond))
	return l.n > 0
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

// release gives everything back: connections that no strand has closed, strands, descriptors.
func (l *loop) release() {
	for i := range l.slots {
		if c := l.slots[i].c; c != nil {
			c.Close()
		}
	}
	l.scheduler.release()
	l.epoll.Close()
	unix.Close(l.wakefd)
}

// Index implements Executor.
func (l *loop) Index() int { return l.index }

// Go implements Executor.
func (l *loop) Go(f func()) { l.start(nil, f) }

// Post implements Executor.
func (l *loop) Post(f func()) { l.post(func() { l.start(nil, f) }) }
