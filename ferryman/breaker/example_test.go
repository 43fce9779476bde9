package breaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
)

var errUnavailable = errors.New("unavailable")

// guard makes a call unless the circuit refuses it.
func guard(b *breaker.Breaker, call func() error) error {
	ticket, ok := b.Allow(time.Now())
	if !ok {
		return errUnavailable
	}
	defer ticket.Release(time.Now()) // a call that panics has no verdict
	if err := call(); err != nil {
		ticket.Failure(time.Now())
		return err
	}
	ticket.Success(time.Now())
	return nil
}

// A breaker guards any call that can fail.
func Example() {
	b := breaker.New(breaker.Config{Threshold: 2, Cooldown: time.Minute})
	query := func() error { return errors.New("database is down") }
	for range 3 {
		fmt.Println(guard(b, query), "-", b.State())
	}
	// Output:
	// database is down - closed
	// database is down - open
	// unavailable - open
}

// Time is an argument, so that a test needs no clock.
func ExampleBreaker_Allow() {
	b := breaker.New(breaker.Config{Threshold: 1, Cooldown: 30 * time.Second})
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	ticket, _ := b.Allow(now)
	ticket.Failure(now)
	_, ok := b.Allow(now.Add(10 * time.Second))
	fmt.Println(ok, b.State(), b.RetryAfter(now.Add(10*time.Second)))

	probe, ok := b.Allow(now.Add(30 * time.Second))
	fmt.Println(ok, b.State(), probe.Probe())

	_, ok = b.Allow(now.Add(31 * time.Second)) // the probe is still out
	fmt.Println(ok, b.State())

	probe.Success(now.Add(32 * time.Second))
	fmt.Println(b.State())
	// Output:
	// false open 20s
	// true half_open true
	// false half_open
	// closed
}

// A sign of life from elsewhere closes the circuit without a probe.
func ExampleBreaker_HealthSucceeded() {
	b := breaker.New(breaker.Config{Threshold: 1, Cooldown: time.Hour})
	now := time.Now()
	fmt.Println(b.HealthFailed(now), b.State())
	fmt.Println(b.HealthSucceeded(now), b.State())
	// Output:
	// true open
	// true closed
}
