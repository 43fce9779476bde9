package netloop

import (
	"net"
	"time"
)

const (
	// sweepGap is the shortest time between two sweeps over the deadlines, and sweepGapEach
	// what each connection adds to it: the share of time spent sweeping is bounded.
	sweepGap     = 10 * time.Millisecond
	sweepGapEach = 2 * time.Microsecond
	// staleness is more than the lag that a loop's clock is likely to have.
	staleness = 10 * time.Millisecond
)

// clock is a loop's time. It stands still while a coroutine runs.
type clock struct {
	base time.Time // at and all deadlines count from here
	now  time.Time
	at   int64
}

func (c *clock) tick() {
	c.now = time.Now()
	c.at = int64(c.now.Sub(c.base))
}

// Now implements Executor.
func (c *clock) Now() time.Time { return c.now }

// deadline translates t, and sees to it that it is noticed.
func (l *loop) deadline(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	d := max(int64(t.Sub(l.base)), 1)
	if d > l.at && d < l.at+int64(staleness) {
		l.tick() // so near that the age of the clock matters
	}
	if d > l.at {
		l.sweepBy(d)
	}
	return d
}

func (l *loop) sweepBy(d int64) {
	gap := int64(sweepGap) + int64(len(l.slots))*int64(sweepGapEach)
	d = max(d, l.sweptAt+gap)
	if l.sweepAt == 0 || d < l.sweepAt {
		l.sweepAt = d
	}
}

// sweep wakes those whose deadline has passed, and finds out when to come again.
func (l *loop) sweep() {
	l.sweptAt, l.sweepAt = l.at, 0
	for i := range l.slots {
		s := &l.slots[i]
		for _, d := range [2]int64{s.rd, s.wd} {
			if d > l.at {
				l.sweepBy(d)
			}
		}
		if s.rd != 0 && s.rd <= l.at {
			l.wake(&s.c.reader)
		}
		if s.wd != 0 && s.wd <= l.at {
			l.wake(&s.c.writer)
		}
	}
}

func (c *loopConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *loopConn) SetReadDeadline(t time.Time) error {
	field := &c.l.slots[c.slot].rd
	err := c.setDeadline(t, field, &c.reader)
	c.expiry.set(*field != 0 && *field <= c.l.at)
	return err
}

func (c *loopConn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(t, &c.l.slots[c.slot].wd, &c.writer)
}

func (c *loopConn) setDeadline(t time.Time, field *int64, waiter **coroutine) error {
	if c.fd < 0 {
		return net.ErrClosed
	}
	*field = c.l.deadline(t)
	if *field != 0 && *field <= c.l.at {
		c.l.wake(waiter)
	}
	return nil
}
