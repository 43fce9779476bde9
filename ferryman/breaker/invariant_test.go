package breaker

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The race detector cannot see a second probe or a transition that is counted twice: these tests look for
// what must never be, whatever the order in which goroutines run.

// Conformance case 206.
func TestBreaker_ExactlyOneOfAThousandIsTheProbe(t *testing.T) {
	const callers, rounds = 1000, 1000
	b := New(Config{Threshold: 1, Cooldown: time.Second})
	now := time.Unix(1000, 0)
	for round := range rounds {
		if b.State() == Closed {
			require.True(t, b.HealthFailed(now))
		}
		now = now.Add(time.Second)
		var admitted atomic.Int32
		var probe atomic.Pointer[Ticket]
		var ready, done sync.WaitGroup
		var goes sync.RWMutex
		goes.Lock()
		const workers = 8 // each asks for many callers: what matters is that they ask at once
		for range workers {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				goes.RLock()
				defer goes.RUnlock()
				for range callers / workers {
					if ticket, ok := b.Allow(now); ok {
						admitted.Add(1)
						probe.Store(&ticket)
					}
				}
			})
		}
		ready.Wait()
		goes.Unlock()
		done.Wait()
		require.EqualValues(t, 1, admitted.Load(), "round %d", round)
		require.True(t, probe.Load().Probe())
		if round%2 == 0 {
			require.True(t, probe.Load().Success(now))
		} else {
			require.True(t, probe.Load().Failure(now))
		}
	}
	require.EqualValues(t, rounds, b.Transitions(HalfOpen))
}

// Conformance case 206, to the letter: a thousand goroutines.
func TestBreaker_ExactlyOneOfAThousandGoroutinesIsTheProbe(t *testing.T) {
	b := New(Config{Threshold: 1, Cooldown: time.Second})
	now := time.Unix(1000, 0)
	b.HealthFailed(now)
	now = now.Add(time.Second)
	for range 20 {
		var admitted atomic.Int32
		var probe Ticket
		var done sync.WaitGroup
		goes := make(chan struct{})
		for range 1000 {
			done.Go(func() {
				<-goes
				if ticket, ok := b.Allow(now); ok {
					admitted.Add(1)
					probe = ticket // a second one would be a data race as well
				}
			})
		}
		close(goes)
		done.Wait()
		require.EqualValues(t, 1, admitted.Load())
		probe.Release(now)
	}
}

// Conformance case 209, for what is unit level of it.
func TestBreaker_RecoversFromLostProbesWhoeverAsks(t *testing.T) {
	b := New(Config{Threshold: 1})
	now := time.Unix(1000, 0)
	for round := range 1000 {
		require.True(t, b.HealthFailed(now))
		var probes, lost atomic.Int32
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for range 8 {
					ticket, ok := b.Allow(now)
					if !ok {
						continue
					}
					if probes.Add(1) > 1 {
						t.Error("two probes are out")
					}
					runtime.Gosched()
					probes.Add(-1)
					lost.Add(1)
					ticket.Release(now)
				}
			})
		}
		done.Wait()
		require.NotZero(t, lost.Load(), "round %d", round)
		ticket, ok := b.Allow(now)
		require.True(t, ok && ticket.Probe(), "round %d: the slot is stuck", round)
		require.True(t, ticket.Success(now))
	}
	require.EqualValues(t, 1000, b.Transitions(HalfOpen), "taking the slot again is no transition")
}

// tally is what callers were told, to be compared with what the circuit counted.
type tally struct {
	trips, reopenings, closings, healthClosings atomic.Uint64
	probes, probesOut                           atomic.Int64
}

// Conformance case 216. While health checks never succeed, at most one probe that does not yield is out at any
// time. A health success may overtake a probe, and a probe one that yields; the call of that still runs while a
// later probe does, and has no say any more.
func TestBreaker_OnlyLegalTransitionsUnderManyGoroutines(t *testing.T) {
	for name, healthSucceeds := range map[string]bool{"calls only": false, "with health successes": true} {
		t.Run(name, func(t *testing.T) {
			b := New(Config{Threshold: 3, Cooldown: time.Microsecond})
			var n tally
			var clock atomic.Int64
			stop := make(chan struct{})
			var sampler, callers sync.WaitGroup
			sampler.Go(func() { sample(t, b, stop) })
			for seed := range uint64(64) {
				callers.Go(func() { mix(t, b, &n, &clock, seed, healthSucceeds) })
			}
			callers.Wait()
			close(stop)
			sampler.Wait()

			requireLegal(t, nil, b.current.Load())
			require.Equal(t, n.trips.Load()+n.reopenings.Load(), b.Transitions(Open), "openings")
			require.Equal(t, n.closings.Load()+n.healthClosings.Load(), b.Transitions(Closed), "closings")
			open := uint64(0)
			if b.State() != Closed {
				open = 1
			}
			require.Equal(t, open, n.trips.Load()-b.Transitions(Closed), "trips less closings")
			require.GreaterOrEqual(t, n.probes.Load(), int64(b.Transitions(HalfOpen)), "every half-opening is a probe")
			require.NotZero(t, n.reopenings.Load())
			require.NotZero(t, n.closings.Load())
			require.Equal(t, healthSucceeds, n.healthClosings.Load() > 0)
		})
	}
}

// mix makes many calls that go well, fail, end without a verdict or late, with health results between.
func mix(t *testing.T, b *Breaker, n *tally, clock *atomic.Int64, seed uint64, healthSucceeds bool) {
	random := rand.New(rand.NewPCG(seed, 1))
	count := func(c *atomic.Uint64, changed bool) {
		if changed {
			c.Add(1)
		}
	}
	var late []Ticket // closed ones, told their verdict long after
	for range 3000 {
		now := time.Unix(0, clock.Add(50))
		switch random.IntN(64) {
		case 0:
			if healthSucceeds {
				count(&n.healthClosings, b.HealthSucceeded(now))
			}
		case 1:
			count(&n.trips, b.HealthFailed(now))
		case 2:
			b.Configure(Config{Threshold: 1 + random.IntN(3), Cooldown: time.Microsecond})
		case 3:
			for _, ticket := range late {
				count(&n.trips, ticket.Failure(now))
				mustNotChange(t, ticket.Success(now))
			}
			late = late[:0]
		}
		allow, yields := b.Allow, random.IntN(4) == 0
		if yields {
			allow = b.AllowYielding
		}
		ticket, ok := allow(now)
		switch {
		case !ok:
			continue
		case !ticket.Probe():
			if late = append(late, ticket); random.IntN(2) == 0 {
				count(&n.trips, ticket.Failure(now))
			} else {
				mustNotChange(t, ticket.Success(now))
			}
			continue
		}
		n.probes.Add(1)
		if yields { // another may be the probe by the time that this one is told
			runtime.Gosched()
			if random.IntN(2) == 0 {
				ticket.Hold()
				runtime.Gosched()
			}
		} else {
			if out := n.probesOut.Add(1); out > 1 && !healthSucceeds {
				t.Errorf("%d probes are out", out)
			}
			runtime.Gosched() // let others ask meanwhile
			n.probesOut.Add(-1)
		}
		switch random.IntN(3) {
		case 0:
			count(&n.closings, ticket.Success(now))
		case 1:
			count(&n.reopenings, ticket.Failure(now))
		}
		ticket.Release(now)
	}
}

func mustNotChange(t *testing.T, changed bool) {
	if changed {
		t.Error("the success of a call that is no probe changed the state")
	}
}

// sample looks at the circuit again and again and insists on a legal history.
func sample(t *testing.T, b *Breaker, stop <-chan struct{}) {
	var last *epoch
	for {
		e := b.current.Load()
		if e != last {
			requireLegal(t, last, e)
			last = e
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// requireLegal checks the counts of an epoch, which came after last, against the only transitions there
// are: closed to open, open to half-open, half-open to closed or open, and open to closed.
func requireLegal(t *testing.T, last, e *epoch) {
	t.Helper()
	closings, openings, halfOpenings := int64(e.transitions[Closed]), int64(e.transitions[Open]), int64(e.transitions[HalfOpen])
	trips, ended := closings, halfOpenings // each closing undoes a trip; ended half-open states
	if e.state != Closed {
		trips++
	}
	if e.state == HalfOpen {
		ended--
	}
	reopenings := openings - trips
	bad := reopenings < 0 || reopenings > ended || ended-reopenings > closings || halfOpenings > openings ||
		e.probeOut && e.state != HalfOpen || e.state == Open && e.until.IsZero()
	if last != nil {
		for to := range e.transitions {
			bad = bad || e.transitions[to] < last.transitions[to]
		}
	}
	if bad {
		t.Errorf("illegal history: state %s, %d to closed, %d to open, %d to half-open, probe out: %t",
			e.state, closings, openings, halfOpenings, e.probeOut)
	}
}
