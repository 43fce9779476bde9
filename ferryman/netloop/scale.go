package netloop

import "time"

const (
	// scaleTick is the time between two looks at the load.
	scaleTick = 50 * time.Millisecond
	// crowded is the share of its time that a loop works from which on the loops are too few.
	crowded = 0.85
	// spare is how much of a processor each of the others would have to carry, at most, for one to be
	// too many.
	spare = 0.7
	// crowdedFor is how many looks in a row must agree before there are more loops, and patient the
	// same before there are fewer. That doubles, up to mostPatient, where fewer were soon too few.
	crowdedFor, patient, mostPatient = 2, 40, 1280
	// atRest is how busy one loop alone may be for the next look to be seldom ticks away, not one: a
	// process that has nothing to do should not wake up to find that out.
	atRest, seldom = 0.1, 5
)

// scaler decides how many loops are at work. One that has much to do is cheaper than two that have
// little: it takes more events at a time, and finds more of them there without having to wait. So
// there are as few at work as can bear the load.
type scaler struct {
	loops    int // how many there are
	working  int
	high     int // looks in a row at which there were too few at work
	low      int // and too many
	patience int // how large low must grow
	fewer    int // ticks since there were last made fewer
	next     int // ticks until the next look
}

func newScaler(loops int) scaler {
	return scaler{loops: loops, working: 1, patience: patient, fewer: patient, next: 1}
}

// look takes the share of time that the busiest of the loops at work has worked since the last look,
// and how many processors the process has used. It returns how many loops should work.
//
// They are two measures for a reason. A loop that other programs keep from running is crowded, as its
// clients see it, but how much there is to do only the processors tell.
func (s *scaler) look(busiest, processors float64) int {
	s.high, s.low, s.fewer = s.high+1, s.low+1, s.fewer+s.next
	if busiest < crowded || s.working == s.loops {
		s.high = 0
	}
	if s.high > 0 || s.working == 1 || processors > spare*float64(s.working-1) {
		s.low = 0
	}
	switch {
	case s.high >= crowdedFor:
		if s.fewer < s.patience {
			s.patience = min(2*s.patience, mostPatient)
		} else {
			s.patience = patient
		}
		s.working, s.high = min(2*s.working, s.loops), 0
	case s.low >= s.patience:
		s.working, s.low, s.fewer = s.working-1, 0, 0
	}
	s.next = 1
	if s.working == 1 && busiest < atRest {
		s.next = seldom
	}
	return s.working
}
