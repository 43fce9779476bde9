package breaker

import (
	"sync/atomic"
	"time"
)

// State is what a circuit does with calls. Its numbers are those of the metric.
type State int32

const (
	Closed   State = iota // calls pass
	Open                  // calls are refused for the cooldown
	HalfOpen              // one call, the probe, may be out; all others are refused
)

// String returns "closed", "open" or "half_open".
func (s State) String() string { return [...]string{"closed", "open", "half_open"}[s] }

// Config may be changed while calls are out.
type Config struct {
	Threshold int           // consecutive failures that open a closed circuit; below 1 means 1
	Cooldown  time.Duration // how long an open circuit refuses; zero or less: not at all, the next call probes
}

// Breaker is one circuit; New makes it. Its methods may be called from any goroutine.
//
// Its story is a chain of epochs. An epoch is made whole for one state, put in place by compare-and-swap,
// and never comes back. A ticket holds the epoch that admitted it, and its verdict counts only while that
// epoch is current. Hence late results change nothing, one probe is out, no transition happens or counts
// twice, and nobody sees a new state with an old deadline.
type Breaker struct {
	current atomic.Pointer[epoch]
	config  atomic.Pointer[Config] // Configure writes it, fail reads it
}

// epoch is fixed once it is published, but for yields and failures.
type epoch struct {
	state       State
	probeOut    bool         // half-open: admitted by this very epoch
	yields      atomic.Bool  // that probe gives way; set before the epoch is published, Hold takes it back
	until       time.Time    // open: when the cooldown is over
	transitions [3]uint64    // into each state so far, the one that led here included
	failures    atomic.Int64 // closed: consecutive ones; a success that finds none writes nothing
}

// New returns a closed circuit.
func New(c Config) *Breaker {
	b := &Breaker{}
	b.Configure(c)
	b.current.Store(&epoch{state: Closed})
	return b
}

// Configure keeps the state. A changed threshold holds from the next failure on, a changed cooldown from
// the next opening on: the deadline of a circuit that is open stays.
func (b *Breaker) Configure(c Config) { b.config.Store(&c) }

// Allow asks for one call at time now. If true, the ticket is owed Success, Failure or Release; if false,
// the call must not be made.
func (b *Breaker) Allow(now time.Time) (Ticket, bool) { return b.allow(now, false) }

// AllowYielding is Allow for a call that depends on somebody else before it can prove anything, such as
// one whose input is still to come. As the probe it gives way to the next call that asks by Allow, until
// the ticket is told to Hold: it goes on, and what comes of it changes nothing.
func (b *Breaker) AllowYielding(now time.Time) (Ticket, bool) { return b.allow(now, true) }

func (b *Breaker) allow(now time.Time, yields bool) (Ticket, bool) {
	for {
		e := b.current.Load()
		if e.state == Closed {
			return Ticket{b, e}, true
		}
		if e.probeOut && (yields || !e.yields.Load()) || e.state == Open && now.Before(e.until) {
			return Ticket{}, false
		}
		probe := &epoch{state: HalfOpen, probeOut: true}
		probe.yields.Store(yields)
		if b.replace(e, probe) {
			return Ticket{b, probe}, true
		}
	}
}

// State is the state now. An open circuit whose cooldown is over stays open until a call asks for it.
func (b *Breaker) State() State { return b.current.Load().state }

// RetryAfter is what is left of the cooldown: zero when it is over or the circuit is not open.
func (b *Breaker) RetryAfter(now time.Time) time.Duration {
	if e := b.current.Load(); e.state == Open {
		return max(0, e.until.Sub(now))
	}
	return 0
}

// Transitions counts the changes to a state since New.
func (b *Breaker) Transitions(to State) uint64 { return b.current.Load().transitions[to] }

// HealthSucceeded closes the circuit at once from any state and, while closed, resets the count of
// failures. It returns true if it changed the state.
func (b *Breaker) HealthSucceeded(_ time.Time) bool {
	e := b.current.Load()
	for ; e.state != Closed; e = b.current.Load() {
		if b.replace(e, &epoch{state: Closed}) {
			return true
		}
	}
	e.reset()
	return false
}

// HealthFailed counts as one failure while closed and changes nothing otherwise. It returns true if it
// opened the circuit.
func (b *Breaker) HealthFailed(now time.Time) bool {
	e := b.current.Load()
	return e.state == Closed && b.fail(e, now)
}

// Ticket is the right to one call. The zero Ticket, which a refusal comes with, ignores what it is told.
type Ticket struct {
	b *Breaker
	e *epoch // that admitted the call
}

// Probe reports whether the call is the one that a half-open circuit waits for.
func (t Ticket) Probe() bool { return t.e != nil && t.e.state == HalfOpen }

// Hold ends the yielding of a probe that AllowYielding has admitted.
func (t Ticket) Hold() {
	if t.Probe() {
		t.e.yields.Store(false)
	}
}

// Success closes the circuit if the call was the probe, else it resets the count of failures. It returns
// true if it changed the state.
func (t Ticket) Success(_ time.Time) bool {
	if t.live() && t.e.state == Closed {
		t.e.reset()
	}
	return t.Probe() && t.b.replace(t.e, &epoch{state: Closed})
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

// fail counts one failure in e, which is closed or half-open, and returns true if it opened the circuit.
func (b *Breaker) fail(e *epoch, now time.Time) bool {
	c := b.config.Load()
	// Of failures that reach the threshold together, replace lets one open the circuit. A success that
	// resets the count after it was reached and before the swap is late, and does not stop it.
	if e.state == Closed && e.failures.Add(1) < int64(c.Threshold) {
		return false
	}
	return b.replace(e, &epoch{state: Open, until: now.Add(max(0, c.Cooldown))})
}

// replace puts next in the place of e, and counts the transition, unless e is not current any more.
func (b *Breaker) replace(e, next *epoch) bool {
	next.transitions = e.transitions
	if next.state != e.state { // a probe's slot that is given back or taken again is no transition
		next.transitions[next.state]++
	}
	return b.current.CompareAndSwap(e, next)
}

func (e *epoch) reset() {
	if e.failures.Load() != 0 {
		e.failures.Store(0)
	}
}
