package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// A sleep and its end cost as much processor time as two or three requests, most of it in the kernel
// and the hypervisor. So a loop sleeps at least a grain between two turns: as long as it takes for
// perTurn requests to come due, but no longer than maxGrain. And while requests are less than
// lazyLimit apart it does not wake for answers: it finds them in the turn that sends the next one.
// Neither hides anything. What a grain delays is send lag and part of the response time, and an
// answer's time of arrival is the kernel's, not that of the late look.
//
// wrk2 has a grain of 1 ms for the same reason.
const (
	perTurn   = 4
	maxGrain  = 200 * time.Microsecond
	lazyLimit = 500 * time.Microsecond
	// lazyAnswer bounds the answers that may lie unread: larger ones would fill the socket's buffer
	// and hold up the target.
	lazyAnswer = 16 << 10
)

// grainFor is the grain of a loop that sends so many requests per second.
func grainFor(rate float64) time.Duration {
	return time.Duration(min(perTurn/rate*1e9, float64(maxGrain)))
}

// lazy reports whether answers can be left alone for so long.
func (l *loop) lazy(sleep time.Duration) bool {
	return sleep <= lazyLimit && l.stamped && l.largest <= lazyAnswer &&
		l.waiting == 0 && // else an answer frees a connection that a request waits for
		l.unwritten == 0 && // else an event lets a request go out
		!l.r.plan.Capacity
}

// wait sleeps until the given time or until something happens, and deals with it.
func (l *loop) wait(until time.Duration) {
	milliseconds := -1
	switch left := until - l.now(); {
	case left <= 0:
		milliseconds = 0
	case l.lazy(left):
		l.pause(left)
		milliseconds = 0
	case l.armed != until:
		l.arm(until, left)
	}
	for i := range l.events[:epollWait(l.epoll, l.events, milliseconds)] {
		e := &l.events[i]
		if e.Fd == timerIndex {
			l.armed = 0
			continue
		}
		c := l.conns[e.Fd]
		if c.generation == e.Pad { // else it is about a socket that has been closed since
			l.handle(c, e.Events)
		}
	}
}

// arm sets the timer. It costs a system call but is as fine as the kernel's clock; the time-out of
// epoll_wait counts in milliseconds.
func (l *loop) arm(until, left time.Duration) {
	l.armed = until
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
	if err := unix.TimerfdSettime(l.timer, 0, &value, nil); err != nil {
		panic("engine: timerfd_settime: " + err.Error()) // only for arguments that are wrong
	}
}

// readWall notes what the wall clock would have shown at the start. It is done anew in each sweep,
// so that a clock that is being corrected does no harm.
func (l *loop) readWall() {
	now := time.Now()
	l.wall = now.UnixNano() - int64(now.Sub(l.start))
}

// arrival is when the last byte of an answer came, by the kernel's stamp if there is one.
func (l *loop) arrival(c *conn, stamp int64) time.Duration {
	now := l.now()
	l.largest = max(l.largest, c.received)
	if stamp == 0 {
		return now
	}
	l.stamped = true
	return min(max(time.Duration(stamp-l.wall), c.sent), now) // whatever the wall clock does
}
