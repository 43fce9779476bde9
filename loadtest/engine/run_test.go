package engine

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/Bunty9/ferryman/loadtest/pacer"
	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
	"github.com/stretchr/testify/require"
)

func TestRun_TargetsShareTheRateAndReportApart(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		a, b := serve(t, respond(okAnswer)), serve(t, respond("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"))
		p := plan(a.url())
		p.Executor = executor
		p.Targets = append(p.Targets, Target{Request: wire.Request{URL: b.url()}, Name: "broken"})
		report := run(t, p)
		require.Len(t, report.Targets, 2)
		require.Equal(t, a.url(), report.Targets[0].Name)
		require.Equal(t, "ok 50", classes(report.Targets[0]))
		require.Equal(t, "broken", report.Targets[1].Name)
		require.Equal(t, "status 50", classes(report.Targets[1]))
		require.Equal(t, map[int]int64{500: 50}, report.Targets[1].Statuses)
		require.EqualValues(t, 100, report.Total.Requests)
	})
}

func TestRun_PoolUsesWhateverConnectionIsIdle(t *testing.T) {
	// One connection of four is stuck for good. Pinned, a quarter of the requests waits behind it;
	// in a pool only the one on it suffers.
	for _, mode := range []pacer.Mode{pacer.Pinned, pacer.Pool} {
		executors(t, func(t *testing.T, executor string) {
			s := serve(t, func(c *net.TCPConn, n int64) bool {
				if n == 1 {
					return never(c, n)
				}
				return respond(okAnswer)(c, n)
			})
			p := plan(s.url())
			p.Executor, p.Mode, p.Loops, p.Timeout = executor, mode, 1, time.Second
			report := run(t, p)
			require.Equal(t, "ok 99, timeout 1", classes(report.Total))
			slow := report.Total.Response.P90US > 700_000
			require.Equal(t, mode == pacer.Pinned, slow, "%s: p90 is %d us", mode, report.Total.Response.P90US)
		})
	}
}

func TestRun_WarmupIsSentButNotCounted(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		s := serve(t, respond(okAnswer))
		p := plan(s.url())
		p.Executor, p.Warmup = executor, 250*time.Millisecond
		report := run(t, p)
		require.EqualValues(t, 100, report.Total.Requests)
		require.EqualValues(t, 200, s.requests.Load())
	})
}

func TestRun_StopReportsWhatWasDone(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		s := serve(t, respond(okAnswer))
		p := plan(s.url())
		p.Executor, p.Duration = executor, time.Hour
		r, err := New(p)
		require.NoError(t, err)
		require.Zero(t, r.Mark("early").AtS)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			for s.requests.Load() < 40 {
				<-time.After(time.Millisecond)
			}
			r.Mark("fault")
			cancel()
		}()
		report, err := r.Run(ctx)
		require.NoError(t, err)
		require.True(t, report.Interrupted)
		require.GreaterOrEqual(t, report.Total.Requests, int64(40))
		require.Equal(t, fmt.Sprintf("ok %d", report.Planned), classes(report.Total))
		require.InDelta(t, 400, report.AchievedS, 20, "the rate is that of the time it ran")
		require.Len(t, report.Marks, 2)
		require.Equal(t, "fault", report.Marks[1].Name)
		require.InDelta(t, 0.1, report.Marks[1].AtS, 5)
		_, err = r.Run(ctx)
		require.ErrorContains(t, err, "once")
	})
}

func TestRun_WhatNeverGotAConnectionIsUnsentAndInvalid(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		p := plan(serve(t, after(100*time.Millisecond, okAnswer)).url())
		p.Executor, p.Connections, p.Loops, p.Timeout = executor, 1, 1, 200*time.Millisecond
		report := run(t, p)
		require.EqualValues(t, 100, report.Total.Requests)
		require.Greater(t, report.Total.Unsent, int64(50))
		require.Equal(t, report.Total.Unsent, report.Total.Requests-report.Total.Service.Count, "no service time without service")
		report.Judge(result.Budgets{Errors: result.ErrorBudget{Any: true}}, result.Limits{Stolen: 1, LagP99: time.Minute})
		require.Equal(t, result.Invalid, report.Verdict.Outcome)
		require.Contains(t, report.Verdict.Reasons[0], "of the rate was sent")
	})
}

func TestRun_CapacityIsAClosedLoopWithoutLatencies(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		s := serve(t, after(10*time.Millisecond, okAnswer))
		p := plan(s.url())
		p.Executor, p.Rate, p.Capacity = executor, 0, true
		report := run(t, p)
		require.Equal(t, result.Capacity, report.Kind)
		require.Nil(t, report.Total.Response)
		// 4 connections, at most 25 answers each in 250 ms; how many less depends on the machine.
		require.LessOrEqual(t, report.Total.Requests, int64(104))
		require.GreaterOrEqual(t, report.Total.Requests, int64(4))
		require.InDelta(t, s.requests.Load(), report.Total.Requests, 4, "what was out at the end is all that may lack")
		require.Equal(t, report.Total.Requests, report.Total.Classes["ok"])
	})
}

func TestRun_ADeadTargetIsNotDialledInATightLoop(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		s := serve(t, closing(""))
		p := plan(s.url())
		p.Executor, p.Rate, p.Capacity = executor, 0, true
		report := run(t, p)
		require.LessOrEqual(t, report.Connections.Dials, int64(4*30), "a pause of 10 ms after each failure")
	})
}

func TestRun_AConnectionPerRequest(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		s := serve(t, respond(okAnswer))
		p := plan(s.url())
		p.Executor, p.NoKeepAlive = executor, true
		report := run(t, p)
		require.Equal(t, "ok 100", classes(report.Total))
		require.EqualValues(t, 100, s.conns.Load())
		require.EqualValues(t, 100, report.Connections.Dials)
	})
}

func TestRun_SendsBodies(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		s := serve(t, respond(okAnswer))
		p := plan(s.url())
		p.Executor = executor
		p.Targets[0].Body = make([]byte, 200_000) // more than a socket takes at once
		report := run(t, p)
		require.Equal(t, "ok 100", classes(report.Total))
		require.EqualValues(t, 100*200_000, s.bodies.Load())
	})
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	good := plan("http://127.0.0.1:1/")
	for _, tc := range []struct {
		change func(*Plan)
		want   string
	}{
		{func(p *Plan) { p.Targets = nil }, "no target"},
		{func(p *Plan) { p.Rate = 0 }, "rate 0"},
		{func(p *Plan) { p.Capacity = true }, "one of the two"},
		{func(p *Plan) { p.Duration = 0 }, "duration"},
		{func(p *Plan) { p.Warmup = -1 }, "negative"},
		{func(p *Plan) { p.Connections = -1 }, "negative"},
		{func(p *Plan) { p.Protocol = "h3" }, `protocol "h3"`},
		{func(p *Plan) { p.Executor = "threads" }, `executor "threads"`},
		{func(p *Plan) { p.Executor, p.Protocol = Loops, HTTP2 }, "plaintext HTTP/1.1"},
		{func(p *Plan) { p.Protocol, p.NoKeepAlive = HTTP2, true }, "HTTP/1.1"},
		{func(p *Plan) { p.Streams = 2 }, "streams"},
		{func(p *Plan) { p.Targets[0].URL = "127.0.0.1" }, "no http://"},
		{func(p *Plan) { p.Targets[0].Status = 99 }, "status 99"},
		{func(p *Plan) { p.Targets[0].URL = "http://192.0.2.1/" }, "--allow-remote"},
		{func(p *Plan) { p.Targets[0].URL = "http://[2001:db8::1]/" }, "--allow-remote"},
	} {
		p := good
		p.Targets = append([]Target(nil), good.Targets...)
		tc.change(&p)
		_, err := New(p)
		require.ErrorContains(t, err, tc.want)
	}
	for _, near := range []string{"127.0.0.1", "10.1.2.3", "172.17.0.2", "192.168.1.1", "[::1]", "[fd00::1]", "localhost"} {
		p := plan("http://" + near + ":1/")
		_, err := New(p)
		require.NoError(t, err, near)
	}
	p := plan("http://192.0.2.1/")
	p.AllowRemote = true
	_, err := New(p)
	require.NoError(t, err)
}

func TestRun_SaysThatNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	executors(t, func(t *testing.T, executor string) {
		p := plan("http://" + addr + "/")
		p.Executor = executor
		_, err := Run(context.Background(), p)
		require.ErrorContains(t, err, "no connection to "+addr)
		require.ErrorContains(t, err, "refused")
	})
}
