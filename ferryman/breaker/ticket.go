package breaker

import "time"

// Ticket is the right to one call. The zero Ticket, which a refusal comes with, ignores what it is told.
type Ticket struct {
	b *Breaker
	e *epoch // that admitted the call
}

// Probe reports whether the call is the one that a half-open circuit waits for.
func (t Ticket) Probe() bool { return t.e != nil && t.e.state == HalfOpen }

// Success closes the circuit if the call was the probe, else it resets the count of failures. It returns
// true if it changed the state.
func (t Ticket) Success(_ time.Time) bool {
	if !t.live() {
		return false
	}
	if t.e.state == HalfOpen {
		return t.b.replace(t.e, &epoch{state: Closed})
	}
	t.e.reset()
	return false
}

// Failure opens the circuit for a full cooldown if the call was the probe, else it counts, and opens it at
// the threshold. It returns true if it changed the state.
func (t Ticket) Failure(now time.Time) bool { return t.live() && t.b.fail(t.e, now) }

// Release ends the call without a verdict and gives a probe's slot back: the next call is the probe. After
// a verdict it does nothing, so it may be deferred.
func (t Ticket) Release(_ time.Time) {
	if t.Probe() { // a fresh epoch, so that this ticket loses its say together with the slot
		t.b.replace(t.e, &epoch{state: HalfOpen})
	}
}

func (t Ticket) live() bool { return t.b != nil && t.b.current.Load() == t.e }
