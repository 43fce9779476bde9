package netloop

import "time"

const (
	// scaleTick is the time between two samples of the load.
	scaleTick = 50 * time.Millisecond
	// saturated is the share of its time that a loop is busy from which on the loops are too few.
	saturated = 0.85
	// shrinkBelow is how much of a processor each of the others would have to carry, at most, for one to be
	// too many.
	shrinkBelow = 0.7
	// growAfter is how many samples in a row must agree before there are more loops, and shrinkAfter the
	// same before there are fewer. That doubles, up to maxShrinkAfter, where fewer were soon too few.
	growAfter, shrinkAfter, maxShrinkAfter = 2, 40, 1280
	// nearlyIdle is how busy one loop alone may be for the next sample to be idleTicks ticks away, not one: a
	// process that has nothing to do should not wake up to find that out.
	nearlyIdle, idleTicks = 0.1, 5
)

// scaler decides how many loops are active. One that has much to do is cheaper than two that have
// little: it takes more events at a time, and finds more of them there without having to wait. So
// there are as few active as can bear the load.
type scaler struct {
	loops       int // how many there are
	active      int
	high        int // samples in a row at which too few were active
	low         int // and too many
	needed      int // how large low must grow
	sinceShrink int // ticks since there were last made fewer
	next        int // ticks until the next sample
}

func newScaler(loops int) scaler {
	return scaler{loops: loops, active: 1, needed: shrinkAfter, sinceShrink: shrinkAfter, next: 1}
}

// sample takes the share of time that the busiest of the active loops was busy since the last sample,
// and how many processors the process has used. It returns how many loops should be active.
//
// They are two measures for a reason. A loop that other programs keep from running is saturated, as its
// clients see it, but how much there is to do only the processors tell.
func (s *scaler) sample(busiest, processors float64) int {
	s.high, s.low, s.sinceShrink = s.high+1, s.low+1, s.sinceShrink+s.next
	if busiest < saturated || s.active == s.loops {
		s.high = 0
	}
	if s.high > 0 || s.active == 1 || processors > shrinkBelow*float64(s.active-1) {
		s.low = 0
	}
	switch {
	case s.high >= growAfter:
		if s.sinceShrink < s.needed {
			s.needed = min(2*s.needed, maxShrinkAfter)
		} else {
			s.needed = shrinkAfter
		}
		s.active, s.high = min(2*s.active, s.loops), 0
	case s.low >= s.needed:
		s.active, s.low, s.sinceShrink = s.active-1, 0, 0
	}
	s.next = 1
	if s.active == 1 && busiest < nearlyIdle {
		s.next = idleTicks
	}
	return s.active
}
