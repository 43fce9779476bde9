package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/breaker"
)

func TestBreaker_CallsOnAClosedCircuitDoNotAllocate(t *testing.T) {
	b := newBreaker()
	for name, call := range map[string]func(){
		"success":          func() { ticket, _ := b.Allow(start); ticket.Success(start) },
		"failure, success": func() { t1, _ := b.Allow(start); t1.Failure(start); t1.Success(start) },
		"release":          func() { ticket, _ := b.Allow(start); ticket.Release(start) },
		"health":           func() { b.HealthFailed(start); b.HealthSucceeded(start) },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, call), name)
	}
	require.Equal(t, breaker.Closed, b.State())
}

func TestBreaker_RefusalsDoNotAllocate(t *testing.T) {
	open := newBreaker()
	trip(t, open, start)
	probing := newBreaker()
	halfOpen(t, probing)

	for _, b := range []*breaker.Breaker{open, probing} {
		state := b.State()
		require.Zero(t, testing.AllocsPerRun(1000, func() { b.Allow(start); b.RetryAfter(start) }), state)
		require.Equal(t, state, b.State())
	}
}

func BenchmarkBreaker_AllowSuccess(b *testing.B) {
	c := newBreaker()
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := c.Allow(start)
		ticket.Success(start)
	}
}

func BenchmarkBreaker_AllowFailureSuccess(b *testing.B) {
	c := newBreaker()
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := c.Allow(start)
		ticket.Failure(start)
		ticket, _ = c.Allow(start)
		ticket.Success(start)
	}
}

func BenchmarkBreaker_Refuse(b *testing.B) {
	c := breaker.New(breaker.Config{Cooldown: time.Hour})
	c.HealthFailed(start)
	b.ReportAllocs()
	for b.Loop() {
		c.Allow(start)
	}
}

func BenchmarkBreaker_EightGoroutines(b *testing.B) {
	c := newBreaker()
	b.SetParallelism(8)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			ticket, _ := c.Allow(start)
			ticket.Success(start)
		}
	})
}

func BenchmarkBreaker_Trip(b *testing.B) {
	c := breaker.New(breaker.Config{Cooldown: time.Nanosecond})
	b.ReportAllocs()
	for b.Loop() {
		c.HealthFailed(start)
		ticket, _ := c.Allow(at(time.Second))
		ticket.Success(start)
	}
}
