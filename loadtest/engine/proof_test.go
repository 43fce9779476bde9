package engine

import (
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// freezer answers at once, except that it freezes for a while at the start of every period.
type freezer struct {
	period, freeze time.Duration
	epoch          time.Time
}

// left is how much of a freeze a moment still has to sit out.
func (f freezer) left(at time.Time) time.Duration {
	return max(0, f.freeze-at.Sub(f.epoch)%f.period)
}

func (f freezer) answer(c *net.TCPConn, n int64) bool {
	if d := f.left(time.Now()); d > 0 {
		pauseFor(d)
	}
	return respond(okAnswer)(c, n)
}

// theory are the response times, sorted, that the schedule and the freezes alone account for.
func (f freezer) theory(r *Runner) []time.Duration {
	var list []time.Duration
	for k := range r.requests {
		list = append(list, f.left(r.start.Add(r.schedule.Due(k))))
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
		const attempts = 8
		for n := 1; ; n++ {
			tooHigh := freezeAttempt(t, executor)
			if tooHigh == "" {
				return
			}
			require.Less(t, n, attempts, "%s, in this and all attempts before", tooHigh)
		}
	})
}

// freezeAttempt fails the test if a time is lower than the theory, and tells which is higher.
func freezeAttempt(t *testing.T, executor string) (tooHigh string) {
	f := freezer{period: 500 * time.Millisecond, freeze: 100 * time.Millisecond, epoch: time.Now()}
	s := serve(t, f.answer)
	p := plan(s.url())
	p.Executor, p.Rate, p.Connections, p.Loops, p.Duration = executor, 1000, 2, 1, 1500*time.Millisecond
	r, err := New(p)
	require.NoError(t, err)
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ok 1500", classes(report.Total))

	want, got := f.theory(r), report.Total.Response
	require.Greater(t, at(want, 99), 90*time.Millisecond, "the theory itself")
	require.Zero(t, at(want, 50))
	// 3 ms for the clock at both ends and the three digits of a histogram.
	const early, late = 3 * time.Millisecond, 15 * time.Millisecond
	for _, x := range []struct {
		percent float64
		us      int64
	}{{50, got.P50US}, {90, got.P90US}, {99, got.P99US}, {99.9, got.P999US}} {
		measured, predicted := time.Duration(x.us)*time.Microsecond, at(want, x.percent)
		require.Greater(t, measured, predicted-early, "p%v is lower than predicted", x.percent)
		if measured > predicted+late {
			tooHigh = fmt.Sprintf("p%v is %v, predicted was %v", x.percent, measured, predicted)
		}
	}
	if got.P99US < 3*report.Total.Service.P99US {
		tooHigh = fmt.Sprintf("service p99 is %d us, response p99 %d us: nothing was hidden", report.Total.Service.P99US, got.P99US)
	}
	return tooHigh
}

// The pinned connections of one loop must not notice that another target is stuck.
func TestRun_AStuckTargetDelaysNobodyElse(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		stuck, fine := serve(t, never), serve(t, respond(okAnswer))
		p := plan(stuck.url())
		p.Targets = append(p.Targets, plan(fine.url()).Targets...)
		p.Executor, p.Loops, p.Timeout, p.Duration = executor, 1, time.Second, 500*time.Millisecond
		report := run(t, p)
		require.EqualValues(t, 100, report.Targets[1].Classes["ok"])
		require.Less(t, report.Targets[1].Response.P99US, int64(300_000))
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
