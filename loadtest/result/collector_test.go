package result

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func layout() Layout {
	return Layout{Targets: []string{"a", "b"}, Warmup: time.Second, Duration: time.Second}
}

// due is a request of target a, due at after the warm-up.
func due(at time.Duration, class Class, took time.Duration) Sample {
	intended := time.Second + at
	return Sample{Class: class, Status: 200, Bytes: 10, Intended: intended, Sent: intended + ms, Done: intended + took, Lag: 0}
}

func TestCollector_CountsEachRequestOnce(t *testing.T) {
	c := NewCollector(layout(), 2)
	c.Recorder(0).Record(due(-1, OK, ms)) // in the warm-up
	c.Recorder(0).Record(due(0, OK, 2*ms))
	c.Recorder(1).Record(due(15*ms, Reset, 4*ms))
	other := due(25*ms, Status, 8*ms)
	other.Target, other.Status = 1, 500
	c.Recorder(1).Record(other)
	r := c.Report(OpenLoop, time.Second)

	require.EqualValues(t, 3, r.Total.Requests)
	require.EqualValues(t, 2, r.Total.Errors())
	require.EqualValues(t, 1, r.Targets[0].Classes["ok"])
	require.EqualValues(t, 1, r.Targets[0].Classes["reset"])
	require.EqualValues(t, 1, r.Targets[1].Classes["status"])
	require.Equal(t, map[int]int64{200: 2, 500: 1}, r.Total.Statuses)
	require.EqualValues(t, 30, r.Total.Bytes)
	require.InDelta(t, 8000, r.Total.Response.MaxUS, 10)
	require.InDelta(t, 7000, r.Total.Service.MaxUS, 10)
	require.Equal(t, 3.0, r.AchievedS)
	require.Equal(t, 1.0, r.CompletedS)
	require.InDelta(t, 0.015, *r.Total.FirstBadS, 1e-9)
	require.InDelta(t, 0.025, *r.Total.LastBadS, 1e-9)
	require.Equal(t, []uint32{1, 0, 0}, r.Timeline.Targets[0].OK[:3])
	require.Equal(t, []uint32{0, 1, 0}, r.Timeline.Targets[0].Bad[:3])
	require.Equal(t, []uint32{0, 0, 1}, r.Timeline.Targets[1].Bad[:3])
	require.EqualValues(t, 8000, r.Timeline.Targets[1].WorstUS[2])
	require.Len(t, r.Timeline.Targets[0].OK, 100)
}

func TestCollector_ARefusalIsBadOnlyWhenItIsSlow(t *testing.T) {
	c := NewCollector(layout(), 1)
	c.Recorder(0).Record(due(0, Refused, 50*ms))
	c.Recorder(0).Record(due(10*ms, Refused, 51*ms))
	r := c.Report(OpenLoop, time.Second)
	require.EqualValues(t, 2, r.Total.Errors(), "the caller did not get its answer either way")
	require.EqualValues(t, 1, r.Total.Bad)
	require.Equal(t, []uint32{1, 0}, r.Timeline.Targets[0].Refused[:2])
	require.Equal(t, []uint32{0, 1}, r.Timeline.Targets[0].Bad[:2])
}

func TestCollector_WhatWasNeverSentHasAResponseTimeButNoService(t *testing.T) {
	c := NewCollector(layout(), 1)
	s := due(0, Timeout, 900*ms)
	s.Sent, s.Lag, s.Status = NotSent, NoLag, 0
	c.Recorder(0).Record(s)
	r := c.Report(OpenLoop, time.Second)
	require.EqualValues(t, 1, r.Total.Unsent)
	require.EqualValues(t, 1, r.Total.Response.Count)
	require.Zero(t, r.Total.Service.Count)
	require.Zero(t, r.SendLag.Count)
	require.Zero(t, r.AchievedS)
	require.Empty(t, r.Total.Statuses)
}

func TestCollector_TimesBeyondTheHistogramAreClamped(t *testing.T) {
	c := NewCollector(layout(), 1)
	c.Recorder(0).Record(due(0, OK, 2*time.Minute))
	require.InDelta(t, 60e6, c.Report(OpenLoop, time.Second).Total.Response.MaxUS, 60e3)
}

func TestCollector_LoopsAndReadersDoNotWaitForEachOther(t *testing.T) {
	const loops, each = 4, 20_000
	c := NewCollector(layout(), loops)
	var recording, reading sync.WaitGroup
	stop := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.Collect()
				c.Peek()
				c.Distributions()
			}
		}
	})
	for i := range loops {
		recording.Go(func() {
			for n := range each {
				s := due(time.Duration(n)*time.Microsecond, OK, ms)
				s.Target = n % 2
				c.Recorder(i).Record(s)
				if n%100 == 0 {
					c.Recorder(i).Flush()
				}
			}
		})
	}
	recording.Wait()
	close(stop)
	reading.Wait()
	r := c.Report(OpenLoop, time.Second)
	require.EqualValues(t, loops*each, r.Total.Requests)
	require.EqualValues(t, loops*each, r.Total.Response.Count)
	require.EqualValues(t, loops*each/2, r.Targets[1].Requests)
}

func TestCollector_LiveShowsTheLastStretch(t *testing.T) {
	c := NewCollector(layout(), 1)
	c.Recorder(0).Record(due(0, OK, ms))
	require.Zero(t, c.Collect().Requests, "nothing was flushed")
	c.Recorder(0).Flush()
	live := c.Collect()
	require.EqualValues(t, 1, live.Requests)
	require.EqualValues(t, 1, live.Recent.Requests)
	require.Equal(t, time.Duration(-1), live.Targets[0].LastBad)
	c.Recorder(0).Record(due(30*ms, Timeout, 80*ms))
	c.Recorder(0).Flush()
	live = c.Collect()
	require.EqualValues(t, 2, live.Requests)
	require.EqualValues(t, 1, live.Recent.Errors)
	require.InDelta(t, 80*ms, live.Recent.P50, float64(ms))
	require.Equal(t, 30*ms, live.Targets[0].LastBad)
	peek := c.Peek()
	require.Zero(t, peek.Recent.Requests, "a new stretch")
	require.Equal(t, live.Targets, peek.Targets)
	require.Equal(t, Fail, Budgets{}.SoFar(live))
	require.Equal(t, Pass, Budgets{Errors: ErrorBudget{Count: 1}}.SoFar(live))
	require.Equal(t, Fail, Budgets{P99: 70 * ms, Errors: ErrorBudget{Any: true}}.SoFar(live))
}

func TestDistribution_CountsWhatIsAtMostABound(t *testing.T) {
	c := NewCollector(layout(), 1)
	for _, took := range []time.Duration{50 * time.Microsecond, ms, 3 * ms, 20 * time.Second} {
		c.Recorder(0).Record(due(0, OK, took))
	}
	c.Recorder(0).Flush()
	c.Collect()
	response, service, lag := c.Distributions()
	require.EqualValues(t, 4, response[0].Count)
	require.Zero(t, response[1].Count)
	require.EqualValues(t, 4, service[0].Count)
	require.EqualValues(t, 4, lag.Count)
	at := map[time.Duration]int64{}
	for i, bound := range Bounds {
		at[bound] = response[0].AtMost[i]
	}
	require.EqualValues(t, 1, at[100*time.Microsecond])
	require.EqualValues(t, 2, at[ms])
	require.EqualValues(t, 3, at[5*ms])
	require.EqualValues(t, 3, at[10*time.Second])
	require.InDelta(t, 20.004, response[0].Sum.Seconds(), 0.1)
}

func TestTimeline_WidensItsBucketsForLongRuns(t *testing.T) {
	require.Equal(t, 10*ms, widthFor(time.Minute))
	require.Equal(t, 10*ms, widthFor(1000*time.Second))
	require.Equal(t, 20*ms, widthFor(1001*time.Second))
	l := newLine(24 * time.Hour)
	require.LessOrEqual(t, len(l.buckets), maxBuckets)
	s := due(24*time.Hour, OK, ms) // due after the end: counted, not drawn
	l.count(&s, 24*time.Hour, 50*ms)
}

func TestRecorder_AllocatesNothing(t *testing.T) {
	c := NewCollector(layout(), 1)
	r, s := c.Recorder(0), due(0, OK, 3*ms)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.Record(s)
		r.Flush()
	}))
}

func BenchmarkRecorder(b *testing.B) {
	r, s := NewCollector(layout(), 1).Recorder(0), due(0, OK, 3*ms)
	for b.Loop() {
		r.Record(s)
	}
}
