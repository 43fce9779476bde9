package health_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/health"
)

// probe is a checker on a network of pipes that writes down what happens, for tests in which time is not
// real either: everything below runs in a bubble of synctest.
type probe struct {
	*health.Checker
	began time.Time
	hangs atomic.Bool // the upstream accepts and says nothing

	mu   sync.Mutex // guards seen
	seen events
}

type events struct {
	dials, reports []time.Duration // since began
	errs           []error         // of the reports
	open           int             // connections
}

func newProbe(addr string) *probe {
	p := &probe{began: time.Now()}
	p.Checker = health.New(addr, "ferryman/test", readStatus, func(err error) {
		p.note(func(e *events, now time.Duration) { e.reports, e.errs = append(e.reports, now), append(e.errs, err) })
	})
	p.Dial = p.dial
	return p
}

func (p *probe) note(change func(e *events, now time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.seen, time.Since(p.began))
}

// events returns what has happened so far.
func (p *probe) events() events {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func (p *probe) dial(context.Context, string, string) (net.Conn, error) {
	p.note(func(e *events, now time.Duration) { e.dials, e.open = append(e.dials, now), e.open+1 })
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		if !p.hangs.Load() {
			readHead(there)
			io.WriteString(there, "HTTP/1.1 200 OK\r\n\r\n")
		}
		io.Copy(io.Discard, there)
	}()
	return &counted{here, p}, nil
}

// counted is a connection whose end is noted.
type counted struct {
	net.Conn
	p *probe
}

func (c *counted) Close() error {
	c.p.note(func(e *events, _ time.Duration) { e.open-- })
	return c.Conn.Close()
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func requireEvery(t *testing.T, interval time.Duration, times []time.Duration) {
	t.Helper()
	for i := 1; i < len(times); i++ {
		require.Equal(t, interval, times[i]-times[i-1], "between check %d and %d", i-1, i)
	}
}

func TestChecker_ChecksOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.Start(5*time.Second, 2*time.Second)
		pass(50 * time.Second)
		p.Stop()
		require.Len(t, p.events().reports, 10)
		require.Less(t, p.events().dials[0], 5*time.Second)
		requireEvery(t, 5*time.Second, p.events().dials)
		require.Equal(t, make([]error, 10), p.events().errs)
	})
}

// Conformance case 223.
func TestChecker_HangingChecksEndAtTheTimeoutOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.hangs.Store(true)
		p.Start(5*time.Second, 2*time.Second)
		for range 1000 {
			pass(5 * time.Second)
			require.LessOrEqual(t, p.events().open, 1)
		}
		p.Stop()
		require.Len(t, p.events().dials, 1000)
		require.Zero(t, p.events().open)
		requireEvery(t, 5*time.Second, p.events().dials)
		for i, at := range p.events().reports {
			require.Equal(t, 2*time.Second, at-p.events().dials[i])
			var timeout net.Error
			require.ErrorAs(t, p.events().errs[i], &timeout)
			require.True(t, timeout.Timeout())
		}
	})
}

func TestChecker_TimeoutIncludesTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			p.note(func(e *events, now time.Duration) { e.dials = append(e.dials, now) })
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p.Start(5*time.Second, 2*time.Second)
		pass(10 * time.Second)
		p.Stop()
		require.ErrorIs(t, p.events().errs[0], context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, p.events().reports[0]-p.events().dials[0])
	})
}

// A timeout that is not under the interval is a configuration error; here it must do no harm.
func TestChecker_NeverOverlapsItselfWhateverTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.hangs.Store(true)
		p.Start(time.Second, 10*time.Second)
		for range 100 {
			pass(time.Second)
			require.LessOrEqual(t, p.events().open, 1)
		}
		p.Stop()
		requireEvery(t, 10*time.Second, p.events().dials)
	})
}

// Conformance case 230.
func TestChecker_ManyAreSpreadOverTheInterval(t *testing.T) {
	for name, format := range map[string]string{"hosts": "10.0.0.%d:80", "ports": "localhost:%d", "names": "service-%d.example:8080"} {
		synctest.Test(t, func(t *testing.T) {
			var probes []*probe
			for i := range 100 {
				p := newProbe(fmt.Sprintf(format, 100+i))
				p.Start(10*time.Second, time.Second)
				probes = append(probes, p)
			}
			pass(10 * time.Second)
			var tenths [10]int
			for _, p := range probes {
				p.Stop()
				require.NotEmpty(t, p.events().dials)
				tenths[p.events().dials[0]/time.Second]++
			}
			for _, n := range tenths {
				require.Greater(t, n, 2, "%s: %v", name, tenths)
				require.Less(t, n, 25, "%s: %v", name, tenths)
			}
		})
	}
}

// Conformance case 226.
func TestChecker_ReloadsThatChangeNothingDoNotDisturbIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.Start(5*time.Second, 2*time.Second)
		for range 200 {
			pass(time.Second / 2)
			p.Configure(5*time.Second, 2*time.Second)
		}
		p.Stop()
		require.Len(t, p.events().dials, 20)
		requireEvery(t, 5*time.Second, p.events().dials)
	})
}

// Conformance case 226.
func TestChecker_ReloadsThatChangeTheIntervalDoNotMultiplyChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.Start(5*time.Second, time.Second)
		pass(20 * time.Second)
		before := len(p.events().dials)
		for i := range 20 {
			p.Configure(5*time.Second+time.Duration(i%2)*time.Second, time.Second)
		}
		pass(5 * time.Second)
		require.Len(t, p.events().dials, before+1)
		pass(50 * time.Second)
		p.Stop()
		require.InDelta(t, before+1+50/6, len(p.events().dials), 1)
	})
}

// Reloads that keep changing the interval must not put the next check off for ever.
func TestChecker_FrequentChangesDoNotStarveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.Start(5*time.Second, time.Second)
		for i := range 100 {
			pass(time.Second)
			p.Configure(5*time.Second+time.Duration(i%2)*time.Second, time.Second)
		}
		p.Stop()
		require.GreaterOrEqual(t, len(p.events().dials), 100/6)
	})
}

// Conformance case 227.
func TestChecker_ChangedIntervalIsInEffectWithinOneOldOne(t *testing.T) {
	for _, change := range []struct{ old, now time.Duration }{
		{5 * time.Second, 30 * time.Second}, {30 * time.Second, 5 * time.Second}, {time.Hour, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newProbe("a:80")
			p.Start(change.old, time.Second/2)
			pass(change.old + change.old/3)
			before := len(p.events().dials)
			p.Configure(change.now, time.Second/2)
			pass(min(change.old, change.now))
			require.Greater(t, len(p.events().dials), before, "%v", change)
			pass(10 * change.now)
			p.Stop()
			requireEvery(t, change.now, p.events().dials[before:])
		})
	}
}

func TestChecker_SpreadAnewByAShorterInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes []*probe
		for i := range 100 {
			p := newProbe(fmt.Sprintf("10.0.0.%d:80", i))
			p.Start(time.Hour, time.Second)
			probes = append(probes, p)
		}
		pass(90 * time.Minute)
		at := map[time.Duration]int{}
		for _, p := range probes {
			p.note(func(e *events, _ time.Duration) { e.dials = nil })
			p.Configure(10*time.Second, time.Second)
		}
		pass(10 * time.Second)
		for _, p := range probes {
			p.Stop()
			require.NotEmpty(t, p.events().dials)
			at[p.events().dials[0].Truncate(time.Second)]++
		}
		require.GreaterOrEqual(t, len(at), 10, "%v", at)
	})
}

// Conformance case 227.
func TestChecker_ChangedTimeoutHoldsFromTheNextCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.hangs.Store(true)
		p.Start(10*time.Second, 4*time.Second)
		for len(p.events().dials) == 0 {
			pass(time.Second)
		}
		p.Configure(10*time.Second, time.Second)
		pass(20 * time.Second)
		p.Stop()
		require.Equal(t, 4*time.Second, p.events().reports[0]-p.events().dials[0])
		require.Equal(t, time.Second, p.events().reports[1]-p.events().dials[1])
		requireEvery(t, 10*time.Second, p.events().dials)
	})
}

func TestChecker_StopInterruptsAndReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.hangs.Store(true)
		p.Start(10*time.Second, 9*time.Second)
		for p.events().open == 0 {
			pass(time.Second)
		}
		before := time.Now()
		p.Stop()
		p.Stop()
		require.Equal(t, before, time.Now(), "Stop waits for the timeout")
		require.Zero(t, p.events().open)
		require.Empty(t, p.events().reports)
		pass(time.Hour)
		require.Len(t, p.events().dials, 1)
		p.Configure(time.Second, time.Second/2) // too late, and harmless
		pass(time.Hour)
		require.Len(t, p.events().dials, 1)
	})
}

func TestChecker_StopBeforeTheFirstCheckOrInsteadOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe("a:80")
		p.Start(time.Hour, time.Second)
		p.Stop()
		newProbe("b:80").Stop()
		pass(2 * time.Hour)
		require.Empty(t, p.events().dials)
	})
}
