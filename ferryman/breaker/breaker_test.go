package breaker_test

import (
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

// trip opens b with failures at the given time and returns a ticket from before.
func trip(t *testing.T, b *breaker.Breaker, now time.Time) (late breaker.Ticket) {
	t.Helper()
	late = admit(t, b, now)
	for b.State() == breaker.Closed {
		admit(t, b, now).Failure(now)
	}
	return late
}

func TestBreaker_ThresholdOfConsecutiveFailuresOpens(t *testing.T) {
	b := newBreaker()
	for range 2 {
		require.False(t, admit(t, b, at(0)).Failure(at(0)))
	}
	require.False(t, admit(t, b, at(0)).Success(at(0)), "a success while closed is no transition")
	for i := range 2 { // time between failures does not matter
		require.False(t, admit(t, b, at(time.Hour*time.Duration(i))).Failure(at(time.Hour*time.Duration(i))))
	}
	require.Equal(t, breaker.Closed, b.State())

	require.True(t, admit(t, b, at(0)).Failure(at(0)))
	require.Equal(t, breaker.Open, b.State())
	refuse(t, b, at(0))
}
