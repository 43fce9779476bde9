package breaker_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/breaker"
)

const cooldown = 10 * time.Second

var start = time.Unix(1_000_000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

func newBreaker() *breaker.Breaker {
	return breaker.New(breaker.Config{Threshold: 3, Cooldown: cooldown})
}

func admit(t *testing.T, b *breaker.Breaker, now time.Time) breaker.Ticket {
	t.Helper()
	ticket, ok := b.Allow(now)
	require.True(t, ok, "call refused in state %s", b.State())
	return ticket
}

func refuse(t *testing.T, b *breaker.Breaker, now time.Time) {
	t.Helper()
	ticket, ok := b.Allow(now)
	require.False(t, ok, "call admitted in state %s", b.State())
	require.Zero(t, ticket)
}

// trip opens b at time now and returns a ticket from before.
func trip(t *testing.T, b *breaker.Breaker, now time.Time) (late breaker.Ticket) {
	t.Helper()
	late = admit(t, b, now)
	for b.State() == breaker.Closed {
		admit(t, b, now).Failure(now)
	}
	return late
}

// halfOpen opens b at start and returns the probe that is out one cooldown later.
func halfOpen(t *testing.T, b *breaker.Breaker) (probe breaker.Ticket) {
	t.Helper()
	trip(t, b, start)
	probe = admit(t, b, at(cooldown))
	require.True(t, probe.Probe())
	require.Equal(t, breaker.HalfOpen, b.State())
	return probe
}

func requireTransitions(t *testing.T, b *breaker.Breaker, closed, open, halfOpen uint64) {
	t.Helper()
	got := [3]uint64{b.Transitions(breaker.Closed), b.Transitions(breaker.Open), b.Transitions(breaker.HalfOpen)}
	require.Equal(t, [3]uint64{closed, open, halfOpen}, got, "transitions to closed, open, half-open")
}

func TestBreaker_StartsClosedWithoutATransition(t *testing.T) {
	b := newBreaker()
	require.Equal(t, breaker.Closed, b.State())
	require.Zero(t, b.RetryAfter(start))
	require.False(t, admit(t, b, start).Probe())
	requireTransitions(t, b, 0, 0, 0)
}

func TestState_NamesAreThoseOfTheMetric(t *testing.T) {
	require.Equal(t, "closed", breaker.Closed.String())
	require.Equal(t, "open", breaker.Open.String())
	require.Equal(t, "half_open", breaker.HalfOpen.String())
	require.Equal(t, []breaker.State{0, 1, 2}, []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen})
}

// Conformance case 204.
func TestBreaker_OnlyConsecutiveFailuresOpen(t *testing.T) {
	b := newBreaker()
	fail := func(now time.Time) bool { return admit(t, b, now).Failure(now) }
	require.False(t, fail(at(0)))
	require.False(t, fail(at(0)))
	require.False(t, admit(t, b, at(0)).Success(at(0)), "a success while closed is no transition")
	require.False(t, fail(at(0)))
	require.False(t, fail(at(24*time.Hour)), "time between failures does not matter")
	require.Equal(t, breaker.Closed, b.State())

	require.True(t, fail(at(48*time.Hour)))
	require.Equal(t, breaker.Open, b.State())
	refuse(t, b, at(48*time.Hour))
	requireTransitions(t, b, 0, 1, 0)
}

func TestBreaker_CallsWithoutAVerdictNeitherCountNorReset(t *testing.T) {
	b := newBreaker()
	admit(t, b, start).Failure(start)
	admit(t, b, start).Failure(start)
	for range 50 { // conformance case 212: clients that leave
		admit(t, b, start).Release(start)
	}
	require.Equal(t, breaker.Closed, b.State())
	require.True(t, admit(t, b, start).Failure(start))
}

// Conformance case 205.
func TestBreaker_OpenRefusesForAllOfTheCooldown(t *testing.T) {
	b := newBreaker()
	trip(t, b, start)
	for _, d := range []time.Duration{0, time.Nanosecond, cooldown / 2, cooldown - time.Nanosecond} {
		refuse(t, b, at(d))
		require.Equal(t, cooldown-d, b.RetryAfter(at(d)))
	}
	require.Zero(t, b.RetryAfter(at(cooldown)))
	require.Zero(t, b.RetryAfter(at(time.Hour)))
	require.Equal(t, breaker.Open, b.State(), "nobody asked for the probe yet")
	require.True(t, admit(t, b, at(cooldown)).Probe())
}

// Conformance case 207, first half.
func TestBreaker_ProbeThatSucceedsClosesWithACountOfZero(t *testing.T) {
	b := newBreaker()
	probe := halfOpen(t, b)
	require.True(t, probe.Success(at(cooldown)))
	require.Equal(t, breaker.Closed, b.State())
	for range 2 {
		require.False(t, admit(t, b, at(cooldown)).Failure(at(cooldown)), "failures from before the trip are forgotten")
	}
	require.True(t, admit(t, b, at(cooldown)).Failure(at(cooldown)))
	requireTransitions(t, b, 1, 2, 1)
}

// Conformance case 207, second half.
func TestBreaker_ProbeThatFailsOpensForAFullCooldown(t *testing.T) {
	b := newBreaker()
	probe := halfOpen(t, b)
	failed := cooldown + 7*time.Second
	require.True(t, probe.Failure(at(failed)))
	require.Equal(t, breaker.Open, b.State())
	require.Equal(t, cooldown, b.RetryAfter(at(failed)))
	refuse(t, b, at(failed+cooldown-time.Nanosecond))
	require.True(t, admit(t, b, at(failed+cooldown)).Probe())
	requireTransitions(t, b, 0, 2, 2)
}

// Conformance case 208.
func TestBreaker_SlowProbeIsNotJoinedByAnother(t *testing.T) {
	b := newBreaker()
	probe := halfOpen(t, b)
	for i := range 10 {
		now := at(time.Duration(i+1) * cooldown)
		refuse(t, b, now)
		require.Zero(t, b.RetryAfter(now))
	}
	require.True(t, probe.Failure(at(10*cooldown)))
	refuse(t, b, at(10*cooldown))
}

// Conformance case 209.
func TestBreaker_LostProbeGivesItsSlotBack(t *testing.T) {
	b := newBreaker()
	probe := halfOpen(t, b)
	for range 1000 {
		probe.Release(at(cooldown))
		require.Equal(t, breaker.HalfOpen, b.State())
		probe = admit(t, b, at(cooldown))
		require.True(t, probe.Probe())
		refuse(t, b, at(cooldown))
	}
	require.True(t, probe.Success(at(cooldown)))
	requireTransitions(t, b, 1, 1, 1)
}

func TestTicket_OnceReleasedHasNoSayAnyMore(t *testing.T) {
	b := newBreaker()
	released := halfOpen(t, b)
	released.Release(at(cooldown))
	second := admit(t, b, at(cooldown))

	released.Release(at(cooldown))
	require.False(t, released.Success(at(cooldown)))
	require.False(t, released.Failure(at(cooldown)))
	refuse(t, b, at(cooldown)) // the second probe still has the slot
	require.True(t, second.Success(at(cooldown)))
}

func TestTicket_ReleaseAfterAVerdictDoesNothing(t *testing.T) {
	for name, verdict := range map[string]func(breaker.Ticket) bool{
		"success": func(probe breaker.Ticket) bool { return probe.Success(at(cooldown)) },
		"failure": func(probe breaker.Ticket) bool { return probe.Failure(at(cooldown)) },
	} {
		b := newBreaker()
		probe := halfOpen(t, b)
		require.True(t, verdict(probe), name)
		state := b.State()
		probe.Release(at(cooldown))
		require.False(t, verdict(probe), "%s: a second verdict counts", name)
		require.Equal(t, state, b.State(), name)
	}
}

func TestTicket_ZeroValueIgnoresWhatItIsTold(t *testing.T) {
	var ticket breaker.Ticket
	require.False(t, ticket.Probe())
	require.False(t, ticket.Success(start))
	require.False(t, ticket.Failure(start))
	ticket.Release(start)
}

// Conformance case 210: what was admitted before a change of state, and ends after it, changes nothing.
func TestTicket_LateResultsChangeNothing(t *testing.T) {
	tests := []struct {
		name string
		walk func(t *testing.T, b *breaker.Breaker, late breaker.Ticket) // to the state in question
	}{
		{"while open", func(t *testing.T, b *breaker.Breaker, _ breaker.Ticket) {}},
		{"while a probe is out", func(t *testing.T, b *breaker.Breaker, _ breaker.Ticket) {
			admit(t, b, at(cooldown))
		}},
		{"while a probe's slot is free", func(t *testing.T, b *breaker.Breaker, _ breaker.Ticket) {
			admit(t, b, at(cooldown)).Release(at(cooldown))
		}},
		{"closed again", func(t *testing.T, b *breaker.Breaker, _ breaker.Ticket) {
			admit(t, b, at(cooldown)).Success(at(cooldown))
		}},
		{"closed again by a health check", func(t *testing.T, b *breaker.Breaker, _ breaker.Ticket) {
			b.HealthSucceeded(start)
		}},
		{"open again", func(t *testing.T, b *breaker.Breaker, _ breaker.Ticket) {
			admit(t, b, at(cooldown)).Success(at(cooldown))
			trip(t, b, at(cooldown))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBreaker()
			late := trip(t, b, start)
			test.walk(t, b, late)
			now := at(cooldown + time.Second)
			state, retry := b.State(), b.RetryAfter(now)
			for range 10 {
				require.False(t, late.Failure(now))
				require.False(t, late.Success(now))
				late.Release(now)
			}
			require.Equal(t, state, b.State())
			require.Equal(t, retry, b.RetryAfter(now))
			if state == breaker.Closed { // none of them counted, and none of them resets
				admit(t, b, now).Failure(now)
				admit(t, b, now).Failure(now)
				require.False(t, late.Failure(now))
				late.Success(now)
				require.True(t, admit(t, b, now).Failure(now))
			}
		})
	}
}

// Conformance case 218.
func TestBreaker_HealthSuccessClosesFromAnyState(t *testing.T) {
	b := newBreaker()
	require.False(t, b.HealthSucceeded(start), "was closed")

	trip(t, b, start)
	require.True(t, b.HealthSucceeded(start))
	require.Equal(t, breaker.Closed, b.State())
	admit(t, b, start)

	probe := halfOpen(t, b)
	require.True(t, b.HealthSucceeded(at(cooldown)))
	require.Equal(t, breaker.Closed, b.State())
	require.False(t, probe.Failure(at(cooldown)), "the probe that was out changes nothing any more")
	require.False(t, probe.Success(at(cooldown)))
	require.Equal(t, breaker.Closed, b.State())
	requireTransitions(t, b, 2, 2, 1)

	probe = halfOpen(t, b)
	probe.Release(at(cooldown))
	require.True(t, b.HealthSucceeded(at(cooldown)), "with the probe's slot free")
}

func TestBreaker_HealthSuccessResetsTheCountWhileClosed(t *testing.T) {
	b := newBreaker()
	for range 10 {
		admit(t, b, start).Failure(start)
		admit(t, b, start).Failure(start)
		require.False(t, b.HealthSucceeded(start))
	}
	require.Equal(t, breaker.Closed, b.State())
}

// Conformance case 221.
func TestBreaker_HealthFailuresCountOneByOneWhileClosed(t *testing.T) {
	b := breaker.New(breaker.Config{Threshold: 2, Cooldown: cooldown})
	for range 10 {
		require.False(t, b.HealthFailed(start))
		require.False(t, b.HealthSucceeded(start))
	}
	require.False(t, b.HealthFailed(start))
	require.True(t, b.HealthFailed(at(time.Hour)))
	require.Equal(t, cooldown, b.RetryAfter(at(time.Hour)))

	mixed := breaker.New(breaker.Config{Threshold: 2, Cooldown: cooldown})
	require.False(t, mixed.HealthFailed(start))
	require.True(t, admit(t, mixed, start).Failure(start), "calls and checks count together")
}

// Conformance case 218.
func TestBreaker_HealthFailureWhileNotClosedChangesNothing(t *testing.T) {
	b := newBreaker()
	trip(t, b, start)
	for range 10 {
		require.False(t, b.HealthFailed(at(time.Second)))
	}
	require.Equal(t, cooldown-time.Second, b.RetryAfter(at(time.Second)), "the cooldown is not extended")

	probe := admit(t, b, at(cooldown))
	for range 10 {
		require.False(t, b.HealthFailed(at(cooldown)))
	}
	require.Equal(t, breaker.HalfOpen, b.State())
	require.True(t, probe.Success(at(cooldown)))
}

// Conformance case 214.
func TestBreaker_ChangedCooldownHoldsFromTheNextOpening(t *testing.T) {
	b := newBreaker()
	trip(t, b, start)
	b.Configure(breaker.Config{Threshold: 3, Cooldown: time.Second})
	require.Equal(t, breaker.Open, b.State())
	refuse(t, b, at(cooldown-time.Nanosecond))
	probe := admit(t, b, at(cooldown))

	b.Configure(breaker.Config{Threshold: 3, Cooldown: time.Minute})
	refuse(t, b, at(cooldown)) // the probe is still out
	probe.Failure(at(cooldown))
	require.Equal(t, time.Minute, b.RetryAfter(at(cooldown)))
}

// Conformance case 214.
func TestBreaker_ChangedThresholdHoldsFromTheNextFailure(t *testing.T) {
	b := newBreaker()
	admit(t, b, start).Failure(start)
	admit(t, b, start).Failure(start)
	b.Configure(breaker.Config{Threshold: 5, Cooldown: cooldown})
	require.False(t, admit(t, b, start).Failure(start))
	require.False(t, admit(t, b, start).Failure(start))
	b.Configure(breaker.Config{Threshold: 2, Cooldown: cooldown})
	require.Equal(t, breaker.Closed, b.State(), "the state is kept")
	require.True(t, admit(t, b, start).Failure(start))
}

func TestConfig_ValuesOutOfRangeAreTheNearestThatWork(t *testing.T) {
	for _, c := range []breaker.Config{{}, {Threshold: -1, Cooldown: -time.Hour}, {Threshold: math.MinInt, Cooldown: math.MinInt64}} {
		b := breaker.New(c)
		require.True(t, admit(t, b, start).Failure(start), "%+v", c)
		require.Zero(t, b.RetryAfter(start), "%+v", c)
		require.True(t, admit(t, b, start).Probe(), "%+v", c)
	}
	huge := breaker.New(breaker.Config{Threshold: math.MaxInt, Cooldown: math.MaxInt64})
	for range 1000 {
		require.False(t, huge.HealthFailed(start))
	}
	huge.Configure(breaker.Config{Threshold: 1, Cooldown: math.MaxInt64})
	require.True(t, huge.HealthFailed(start))
	refuse(t, huge, at(100*365*24*time.Hour))
}

// halfOpenYielding is halfOpen with a probe that yields.
func halfOpenYielding(t *testing.T, b *breaker.Breaker) (probe breaker.Ticket) {
	t.Helper()
	trip(t, b, start)
	probe, ok := b.AllowYielding(at(cooldown))
	require.True(t, ok && probe.Probe())
	require.Equal(t, breaker.HalfOpen, b.State())
	return probe
}

func TestBreaker_ProbeThatYieldsGivesWayOnceAndHasNoSayThen(t *testing.T) {
	for name, verdict := range map[string]func(breaker.Ticket) bool{
		"success": func(t breaker.Ticket) bool { return t.Success(at(cooldown)) },
		"failure": func(t breaker.Ticket) bool { return t.Failure(at(cooldown)) },
		"release": func(t breaker.Ticket) bool { t.Release(at(cooldown)); return false },
		"hold":    func(t breaker.Ticket) bool { t.Hold(); return false },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker()
			yielding := halfOpenYielding(t, b)
			_, ok := b.AllowYielding(at(cooldown))
			require.False(t, ok, "it does not give way to another of its kind")
			probe := admit(t, b, at(cooldown))
			require.True(t, probe.Probe())
			require.False(t, verdict(yielding))
			require.Equal(t, breaker.HalfOpen, b.State())
			refuse(t, b, at(cooldown))
			require.True(t, probe.Success(at(cooldown)))
			requireTransitions(t, b, 1, 1, 1)
		})
	}
}

func TestBreaker_ProbeThatYieldsDecidesWhereNobodyElseAsks(t *testing.T) {
	b := newBreaker()
	require.True(t, halfOpenYielding(t, b).Success(at(cooldown)))
	requireTransitions(t, b, 1, 1, 1)
	b = newBreaker()
	require.True(t, halfOpenYielding(t, b).Failure(at(cooldown)))
	requireTransitions(t, b, 0, 2, 1)
}

func TestBreaker_ProbeThatHoldsYieldsNoMore(t *testing.T) {
	b := newBreaker()
	probe := halfOpenYielding(t, b)
	probe.Hold()
	refuse(t, b, at(cooldown))
	require.True(t, probe.Success(at(cooldown)))
}

func TestBreaker_YieldingMeansNothingWhileClosed(t *testing.T) {
	b := newBreaker()
	for range 3 {
		ticket, ok := b.AllowYielding(start)
		require.True(t, ok)
		require.False(t, ticket.Probe())
		ticket.Hold()
		ticket.Failure(start)
	}
	require.Equal(t, breaker.Open, b.State())
	_, ok := b.AllowYielding(start)
	require.False(t, ok)
	breaker.Ticket{}.Hold()
}
