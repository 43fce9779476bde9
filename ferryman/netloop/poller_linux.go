package netloop

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxEvents is how many events a loop takes from the kernel at once.
	maxEvents = 256
	// shortWait is how long a wait in the kernel may last, and shortBefore how many waits in a row must
	// have been shorter for the next one to be tried there.
	shortWait, shortBefore = time.Millisecond, 2
)

// poller is a loop's epoll set, and how it is waited for. There are two ways.
//
// Where events follow closely the loop waits in epoll_pwait itself and keeps its processor: parking costs
// several system calls and wakes another thread. Otherwise it parks, and the runtime's own poller wakes
// it: a call that blocks, of which the scheduler is told, makes that take the processor away and give it
// back, which costs more still. The runtime watches wakeSet, a set that holds the loop's set and nothing else,
// and only while the loop is parked: else a thread that waits there for whatever else there is would wake
// for every event of the loop.
type poller struct {
	epfd   int
	events [maxEvents]unix.EpollEvent
	n      int // events taken last

	wakeSet   *os.File // the wake-up descriptor
	wakeSetFd int
	raw       syscall.RawConn    // wakeSet's
	take      func(uintptr) bool // fills events without waiting; made once
	waited    bool               // take has found nothing, so the loop has parked
	armed     bool               // wakeSet watches the loop's set
	wakeAt    int64              // the deadline of wakeSet, 0 if it has none
	short     int                // waits in a row that were short
}

func (p *poller) open() error {
	var err error
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if p.wakeSetFd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		unix.Close(p.epfd)
		return os.NewSyscallError("epoll_create1", err)
	}
	unix.SetNonblock(p.wakeSetFd, true) // so that NewFile gives it to the runtime's poller
	p.wakeSet = os.NewFile(uintptr(p.wakeSetFd), "epoll")
	if p.raw, err = p.wakeSet.SyscallConn(); err == nil {
		err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.wakeSetFd, unix.EPOLL_CTL_ADD, p.epfd, &unix.EpollEvent{}))
	}
	if err != nil {
		p.close()
		return err
	}
	p.take = func(uintptr) bool {
		p.n = epollWait(p.epfd, p.events[:], 0)
		p.waited = p.waited || p.n == 0
		return p.n > 0
	}
	return nil
}

func (p *poller) close() {
	p.wakeSet.Close()
	unix.Close(p.epfd)
}

// arm has wakeSet watch the loop's set, or not. What is there already wakes at once.
func (p *poller) arm(on bool) {
	if p.armed == on {
		return
	}
	p.armed = on
	var ev unix.EpollEvent
	if on {
		ev.Events = unix.EPOLLIN | unix.EPOLLET
	}
	unix.EpollCtl(p.wakeSetFd, unix.EPOLL_CTL_MOD, p.epfd, &ev)
}

// await waits for events, until a moment of a clock at the latest; 0: without limit.
func (p *poller) await(c *clock, until int64) {
	if p.short >= shortBefore && p.waitShort() {
		return
	}
	p.arm(true)
	if until != 0 && (p.wakeAt == 0 || until < p.wakeAt) {
		p.wakeAt = until
		p.wakeSet.SetReadDeadline(c.base.Add(time.Duration(until)))
	}
	p.n = 0
	if p.raw.Read(p.take) != nil { // the deadline, but what is there comes first
		p.wakeAt = 0
		p.wakeSet.SetReadDeadline(time.Time{})
		p.take(0)
	}
}

// waitShort waits in the kernel for events that are likely to come soon. It returns false if none came.
func (p *poller) waitShort() bool {
	p.arm(false)
	p.n = epollWait(p.epfd, p.events[:], uintptr(shortWait/time.Millisecond))
	return p.n > 0
}

// lasted is told how long a wait was.
func (p *poller) lasted(d time.Duration) {
	if p.short++; d >= shortWait {
		p.short = 0
	}
}
