package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/breaker"
)

// model is the circuit as the specification tells it: sequential, with the generation of its state as a
// number and nothing clever.
type model struct {
	threshold   int
	cooldown    time.Duration
	state       breaker.State
	generation  int // grows with each change of state and each probe that is released
	failures    int
	probeOut    bool
	yields      bool // the probe does
	until       time.Time
	transitions [3]uint64
}

func (m *model) enter(s breaker.State) bool {
	m.state, m.failures, m.probeOut = s, 0, false
	m.generation++
	m.transitions[s]++
	return true
}

func (m *model) open(now time.Time) bool {
	m.until = now.Add(m.cooldown)
	return m.enter(breaker.Open)
}

func (m *model) allow(now time.Time, yields bool) (generation int, probe, ok bool) {
	if m.state == breaker.Open && !now.Before(m.until) {
		m.enter(breaker.HalfOpen)
	}
	switch {
	case m.state == breaker.Closed:
		return m.generation, false, true
	case m.state == breaker.Open || m.probeOut && (yields || !m.yields):
		return 0, false, false
	case m.probeOut: // the probe that is out has nothing to say any more
		m.generation++
	}
	m.probeOut, m.yields = true, yields
	return m.generation, true, true
}

func (m *model) hold(generation int) {
	if generation == m.generation {
		m.yields = false
	}
}

func (m *model) success(generation int) bool {
	if generation != m.generation {
		return false
	}
	if m.state == breaker.HalfOpen {
		return m.enter(breaker.Closed)
	}
	m.failures = 0
	return false
}

func (m *model) failure(generation int, now time.Time) bool {
	if generation != m.generation {
		return false
	}
	if m.state == breaker.HalfOpen {
		return m.open(now)
	}
	m.failures++
	return m.failures >= m.threshold && m.open(now)
}

func (m *model) release(generation int) {
	if generation == m.generation && m.state == breaker.HalfOpen {
		m.probeOut = false
		m.generation++
	}
}

func (m *model) healthSucceeded() bool {
	if m.state != breaker.Closed {
		return m.enter(breaker.Closed)
	}
	m.failures = 0
	return false
}

func (m *model) healthFailed(now time.Time) bool {
	return m.state == breaker.Closed && m.failure(m.generation, now)
}

// play runs the same operations, two bytes each, on a breaker and on the model, and compares all answers.
// Tickets stay in play after their verdict, so that late and repeated verdicts are among the operations.
func play(t require.TestingT, ops []byte) {
	type held struct {
		ticket     breaker.Ticket
		generation int
	}
	m := &model{threshold: 3, cooldown: cooldown}
	b := breaker.New(breaker.Config{Threshold: m.threshold, Cooldown: m.cooldown})
	now := start
	tickets := []held{{generation: -1}}
	for step := 0; step+1 < len(ops); step += 2 {
		op, arg := ops[step]%15, ops[step+1]
		h := tickets[len(tickets)-1-int(arg)%min(len(tickets), 8)]
		switch op {
		case 0, 1, 2, 12, 13:
			allow, yields := b.Allow, op > 2
			if yields {
				allow = b.AllowYielding
			}
			ticket, ok := allow(now)
			generation, probe, want := m.allow(now, yields)
			same(t, want, ok, "step %d: admitted", step)
			same(t, probe, ticket.Probe(), "step %d: probe", step)
			if ok {
				tickets = append(tickets, held{ticket, generation})
			}
		case 3, 4:
			same(t, m.success(h.generation), h.ticket.Success(now), "step %d: success", step)
		case 5, 6, 7:
			same(t, m.failure(h.generation, now), h.ticket.Failure(now), "step %d: failure", step)
		case 8:
			m.release(h.generation)
			h.ticket.Release(now)
		case 14:
			m.hold(h.generation)
			h.ticket.Hold()
		case 9:
			now = now.Add(time.Duration(arg) * cooldown / 64)
		case 10:
			if arg%2 == 0 {
				same(t, m.healthSucceeded(), b.HealthSucceeded(now), "step %d: health success", step)
			} else {
				same(t, m.healthFailed(now), b.HealthFailed(now), "step %d: health failure", step)
			}
		case 11:
			m.threshold, m.cooldown = 1+int(arg)%4, time.Duration(arg)*cooldown/64
			b.Configure(breaker.Config{Threshold: m.threshold, Cooldown: m.cooldown})
		}
		same(t, m.state, b.State(), "step %d: state", step)
		for to, want := range m.transitions {
			same(t, want, b.Transitions(breaker.State(to)), "step %d: transitions", step)
		}
		retry := time.Duration(0)
		if m.state == breaker.Open {
			retry = max(0, m.until.Sub(now))
		}
		same(t, retry, b.RetryAfter(now), "step %d: retry after", step)
	}
}

// same is require.Equal without its cost, which would be most of that of a sequence.
func same[V comparable](t require.TestingT, want, got V, format string, step int) {
	if want != got {
		require.Equal(t, want, got, format, step)
	}
}

func TestBreaker_RandomSequencesAgreeWithTheModel(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 1000)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		t.Logf("seed %d", seed)
		play(t, ops)
	}
}

// Conformance case 219, with a clock of its own: an upstream that is well and broken by turns of half a
// cooldown, for a minute.
func TestBreaker_FlappingUpstreamLeavesNoStuckState(t *testing.T) {
	m := &model{threshold: 3, cooldown: time.Second}
	b := breaker.New(breaker.Config{Threshold: m.threshold, Cooldown: m.cooldown})
	well := func(d time.Duration) bool { return d/(m.cooldown/2)%2 == 1 }
	for d := time.Duration(0); d < time.Minute; d += 37 * time.Millisecond {
		ticket, ok := b.Allow(at(d))
		generation, _, want := m.allow(at(d), false)
		require.Equal(t, want, ok, "at %s", d)
		switch {
		case !ok:
		case well(d):
			require.Equal(t, m.success(generation), ticket.Success(at(d)), "at %s", d)
		default:
			require.Equal(t, m.failure(generation, at(d)), ticket.Failure(at(d)), "at %s", d)
		}
	}
	requireTransitions(t, b, m.transitions[0], m.transitions[1], m.transitions[2])
	require.NotZero(t, b.Transitions(breaker.Closed))
	require.NotEqual(t, breaker.HalfOpen, b.State())
}

func FuzzBreaker(f *testing.F) {
	f.Add([]byte{0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 9, 64, 0, 0, 3, 0})           // trip, wait, probe, close
	f.Add([]byte{11, 0, 10, 1, 12, 0, 0, 0, 3, 1, 8, 0, 12, 0, 14, 0, 0, 0, 3, 0}) // yields, late verdict, holds
	f.Add([]byte{11, 0, 10, 1, 0, 0, 8, 0, 0, 0, 8, 1, 0, 0, 5, 1, 5, 0})          // release twice, late verdict
	f.Fuzz(func(t *testing.T, ops []byte) {
		play(t, ops[:min(len(ops), 4000)])
	})
}
