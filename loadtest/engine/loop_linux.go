package engine

import (
	"fmt"
	"runtime"
	"time"

	"github.com/Bunty9/ferryman/loadtest/machine"
	"github.com/Bunty9/ferryman/loadtest/result"
	"golang.org/x/sys/unix"
)

// timerIndex marks the timer's events among those of connections.
const timerIndex = -1

// loop is one thread with its lanes and connections. All its methods run on that thread.
type loop struct {
	r        *Runner
	recorder *result.Recorder
	epoll    int
	timer    int
	armed    time.Duration // when the timer will fire; 0: not set
	events   []unix.EpollEvent
	buffer   []byte // received bytes; empty between two reads
	grain    time.Duration
	receiver receiver
	pause    func(time.Duration)

	lanes []*lane // by index in the schedule; nil: another loop's
	mine  []*lane
	conns []*conn

	start     time.Time
	cursor    int64 // the next request of the schedule to look at
	out       int   // requests that are at work
	unwritten int   // those of them that are being dialled for or not written whole
	waiting   int   // requests that are due while no connection is free
	nextSweep time.Duration
	nextFlush time.Duration
	dialErr   error // the last one

	wall    int64 // wall time of the start as of the last sweep, to read the kernel's stamps
	stamped bool  // the kernel does stamp what arrives
	largest int64 // answer so far, in bytes
}

func newLoop(r *Runner, index int) (*loop, error) {
	l := &loop{
		r: r, recorder: r.collector.Recorder(index), epoll: -1, timer: -1,
		events: make([]unix.EpollEvent, 512), buffer: make([]byte, 64<<10),
		lanes: make([]*lane, len(r.schedule.Lanes())), grain: grainFor(r.plan.Rate / float64(r.plan.Loops)),
		pause: pause,
	}
	if runtime.GOMAXPROCS(0) > r.plan.Loops { // others have a processor meanwhile
		l.pause = pauseUntold
	}
	for i, p := range r.schedule.Lanes() {
		if p.Loop == index {
			l.addLane(i, &lane{Lane: p, target: r.targets[p.Target], idle: ring{items: make([]*conn, p.Connections)}})
		}
	}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		l.close()
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	// Edge-triggered: setting the timer again counts, so it need not be read.
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: timerIndex}
	if err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, l.timer, &event); err != nil {
		l.close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return l, nil
}

func (l *loop) addLane(index int, ln *lane) {
	l.lanes[index] = ln
	l.mine = append(l.mine, ln)
	for range ln.Connections {
		c := &conn{lane: ln, index: int32(len(l.conns)), fd: -1}
		l.conns = append(l.conns, c)
		ln.down = append(ln.down, c)
	}
}

// now is the time since the schedule began.
func (l *loop) now() time.Duration { return time.Since(l.start) }

// run keeps to the schedule. The thread is the loop's own, so that its processor time can be told.
func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := machine.ThreadTime()
	l.start = l.r.start
	for !l.turn() {
	}
	l.r.loopTime.Add(int64(machine.ThreadTime() - before))
}

// turn sends what is due, waits, and deals with what came. It reports whether the run is over.
func (l *loop) turn() (over bool) {
	now, end := l.now(), l.r.end()
	nextDue := l.release(now, end)
	if now >= l.nextSweep {
		l.nextSweep = now + sweepEvery
		l.sweep(now, end)
		l.readWall()
	}
	if now >= l.nextFlush {
		l.nextFlush = now + flushEvery
		l.recorder.Flush()
	}
	if l.over(now, end) {
		return true
	}
	l.wait(max(min(nextDue, l.nextSweep), now+l.grain))
	return false
}

// release hands the requests that are due by now to their lanes, and returns when the next is due.
func (l *loop) release(now, end time.Duration) (nextDue time.Duration) {
	if l.r.plan.Capacity {
		return forever
	}
	for l.cursor < l.r.requests {
		due := l.r.schedule.Due(l.cursor)
		if due >= end {
			return forever
		}
		ln := l.lanes[l.r.schedule.LaneOf(l.cursor)]
		if ln != nil && due > now {
			return due
		}
		l.cursor++
		if ln != nil {
			ln.waiting++
			l.waiting++
			l.serve(ln)
		}
	}
	return forever
}

// serve sends a lane's waiting requests as long as it has connections for them.
func (l *loop) serve(ln *lane) {
	for ln.waiting > 0 {
		c := ln.take()
		if c == nil {
			return
		}
		due := l.r.schedule.Due(ln.Request(ln.next))
		ln.next++
		ln.waiting--
		l.waiting--
		l.begin(c, due)
	}
}

// over reports whether nothing is left to be done, giving up on what is out when it had its time.
func (l *loop) over(now, end time.Duration) bool {
	if now < end && (l.r.plan.Capacity || l.cursor < l.r.requests) {
		return false
	}
	if l.out == 0 && l.waiting == 0 {
		return true
	}
	if now < end+l.r.plan.Timeout+2*sweepEvery {
		return false
	}
	l.abandon(now)
	return true
}

// abandon counts what has no outcome by the end as a timeout: those that are out and those that no
// connection came free for.
func (l *loop) abandon(now time.Duration) {
	for _, c := range l.conns {
		if c.atWork() {
			l.finish(c, result.Timeout, now)
		}
	}
	for _, ln := range l.mine {
		for ; ln.waiting > 0; ln.waiting-- {
			l.waiting--
			due := l.r.schedule.Due(ln.Request(ln.next))
			ln.next++
			l.recorder.Record(result.Sample{
				Target: ln.Target, Class: result.Timeout, Intended: due, Sent: result.NotSent, Done: now, Lag: result.NoLag,
			})
		}
	}
}

// sweep ends what takes too long. In a closed loop it also starts those that have nothing to do.
func (l *loop) sweep(now, end time.Duration) {
	for _, c := range l.conns {
		if c.atWork() && now-c.sent > l.r.plan.Timeout {
			l.finish(c, result.Timeout, now)
			l.serve(c.lane)
		}
	}
	if !l.r.plan.Capacity || now >= end {
		return
	}
	for _, ln := range l.mine {
		for range ln.Connections {
			if c := ln.take(); c != nil {
				l.begin(c, now)
			}
		}
	}
}

func (l *loop) close() {
	for _, c := range l.conns {
		l.drop(c)
	}
	for _, fd := range []int{l.timer, l.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	l.timer, l.epoll = -1, -1
}
