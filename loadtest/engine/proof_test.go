package engine

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// freezer answers at once, except that it freezes for a while at the start of every period. It notes
// when it began and when it had finished to write each answer.
type freezer struct {
	period, freeze time.Duration
	epoch          time.Time

	mu           sync.Mutex // guards what follows
	began, wrote []time.Time
}

// left is how much of a freeze a moment still has to sit out.
func (f *freezer) left(at time.Time) time.Duration {
	return max(0, f.freeze-at.Sub(f.epoch)%f.period)
}

func (f *freezer) answer(c *net.TCPConn, n int64) bool {
	if d := f.left(time.Now()); d > 0 {
		pauseFor(d)
	}
	f.note(&f.began)
	stays := respond(okAnswer)(c, n)
	f.note(&f.wrote)
	return stays
}

func (f *freezer) note(log *[]time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*log = append(*log, time.Now())
}

func (f *freezer) answers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.wrote)
}

// since are the response times, sorted, if the answer to request k came at the k-th of the moments.
func since(r *Runner, moment func(k int64) time.Time) []time.Duration {
	var list []time.Duration
	for k := range r.requests {
		list = append(list, moment(k).Sub(r.start.Add(r.schedule.Due(k))))
	}
	slices.Sort(list)
	return list
}

func at(sorted []time.Duration, percent float64) time.Duration {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*percent/100))]
}

// A server that stands still for a fifth of the time: whoever sends on a schedule waits with it.
// Measured from when a request was due, the percentiles are those that arithmetic predicts; measured
// from when it was sent, as generators do that wait for their answers, the same run looks fine.
//
// A busy machine adds to the times and never takes away: the lower bounds hold in every attempt, the
// upper ones in at least one.
func TestRun_AFreezeShowsInResponseTimesAsTheScheduleSays(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		const attempts = 12
		for n := 1; ; n++ {
			tooHigh := freezeAttempt(t, executor)
			if tooHigh == "" {
				return
			}
			require.Less(t, n, attempts, "%s, in this and all attempts before", tooHigh)
		}
	})
}

// freezeAttempt fails the test if a time is lower than it can be, and tells which is too high. What
// is too high depends on how well the server kept to its script: if it did, the theory is the
// measure, else what the server did.
func freezeAttempt(t *testing.T, executor string) (tooHigh string) {
	f := &freezer{period: 500 * time.Millisecond, freeze: 100 * time.Millisecond, epoch: time.Now()}
	s := serve(t, f.answer)
	p := plan(s.url())
	// One connection, so that the server sees the requests in the order of the schedule.
	p.Executor, p.Rate, p.Connections, p.Duration = executor, 1000, 1, 1500*time.Millisecond
	r, err := New(p)
	require.NoError(t, err)
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ok 1500", classes(report.Total))
	require.Eventually(t, func() bool { return f.answers() == 1500 }, 10*time.Second, time.Millisecond, "the server's log is whole")

	f.mu.Lock()
	defer f.mu.Unlock()
	theory := since(r, func(k int64) time.Time {
		due := r.start.Add(r.schedule.Due(k))
		return due.Add(f.left(due))
	})
	earliest := since(r, func(k int64) time.Time { return f.began[k] })
	latest := since(r, func(k int64) time.Time { return f.wrote[k] })
	require.Greater(t, at(theory, 99), 90*time.Millisecond, "the theory itself")
	require.Zero(t, at(theory, 50))

	got := report.Total.Response
	const (
		digits  = 2 * time.Millisecond  // what three digits and the clocks at both ends may lose
		reading = 10 * time.Millisecond // from the server's write to the generator's knowing
	)
	for _, x := range []struct {
		percent float64
		us      int64
	}{{50, got.P50US}, {90, got.P90US}, {99, got.P99US}, {99.9, got.P999US}} {
		measured := time.Duration(x.us) * time.Microsecond
		require.Greater(t, measured, at(theory, x.percent)-digits, "p%v is lower than predicted", x.percent)
		require.Greater(t, measured, at(earliest, x.percent)-digits, "p%v is from before the answer", x.percent)
		if limit := at(latest, x.percent) + reading; measured > limit {
			tooHigh = fmt.Sprintf("p%v is %v, the server's own log says %v", x.percent, measured, limit-reading)
		}
	}
	if got.P99US < 3*report.Total.Service.P99US {
		tooHigh = fmt.Sprintf("service p99 is %d us, response p99 %d us: nothing was hidden", report.Total.Service.P99US, got.P99US)
	}
	return tooHigh
}

// The connections to one target must not notice that another is stuck.
func TestRun_AStuckTargetDelaysNobodyElse(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		stuck, fine := serve(t, never), serve(t, respond(okAnswer))
		p := plan(stuck.url())
		p.Targets = append(p.Targets, plan(fine.url()).Targets...)
		p.Executor, p.Loops, p.Timeout, p.Duration = executor, 1, time.Second, 500*time.Millisecond
		report := run(t, p)
		require.EqualValues(t, 100, report.Targets[1].Classes["ok"])
		require.Less(t, report.Targets[1].Response.P50US, int64(300_000))
		require.EqualValues(t, 100, report.Targets[0].Classes["timeout"])
		require.GreaterOrEqual(t, report.Targets[0].Response.MinUS, int64(500_000), "a time-out is counted with the time waited")
	})
}

func TestRun_TheScheduleIsKeptWithoutBurstsPerConnection(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		var first, last atomic.Int64
		s := serve(t, func(c *net.TCPConn, n int64) bool {
			if n == 1 {
				first.Store(time.Now().UnixNano())
			}
			last.Store(time.Now().UnixNano())
			return respond(okAnswer)(c, n)
		})
		p := plan(s.url())
		p.Executor, p.Duration = executor, time.Second
		report := run(t, p)
		require.EqualValues(t, 400, report.Total.Requests)
		// 399 gaps of 2.5 ms.
		require.InDelta(t, 997.5, float64(last.Load()-first.Load())/1e6, 300)
	})
}
