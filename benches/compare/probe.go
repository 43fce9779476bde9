package main

import (
	"context"
	"errors"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/contender"
	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/report"
)

// probeLimit is when the load of a probe ends by itself; tracers may take a second to attach.
const probeLimit = 40 * time.Second

// windows is how often each thing is counted, so that it has a spread.
const windows = 3

// probe counts allocations and system calls while the contender is saturated, in a block of its own:
// counting costs something.
func (f *field) probe(ctx context.Context, s *report.Section, r *contender.Running) error {
	if len(r.PIDs()) == 0 {
		return nil
	}
	window := time.Second
	if f.o.quick {
		window /= 2
	}
	own, err := scrapeCost(ctx, r)
	if err != nil {
		return err
	}
	var failed error
	outcome, err := f.generator.Run(ctx, f.job(r, *s, probeLimit), load.Hooks{Begun: func() {
		if failed = f.countAllocations(ctx, s, r, window, own); failed == nil {
			failed = f.countCalls(ctx, s, r, window)
		}
		failed = errors.Join(failed, f.generator.Cut())
	}})
	if err != nil {
		return err
	}
	if why := refusal(outcome); why != "" && failed == nil {
		f.logf("%s: while counting, %s: %s", f.w.name, r.Name, why)
	}
	return failed
}

// scrapes is over how many readings the cost of one is averaged. A runtime counts what it allocates
// in lots: a single difference may be off by thousands.
const scrapes = 20

// scrapeCost is how many objects an idle contender allocates from one reading to the next, which is
// what reading costs.
func scrapeCost(ctx context.Context, r *contender.Running) (float64, error) {
	if !r.HasMetrics {
		return 0, nil
	}
	first, err := r.Allocations(ctx) // it also makes the connection
	if err != nil {
		return 0, err
	}
	last := first
	for range scrapes {
		if last, err = r.Allocations(ctx); err != nil {
			return 0, err
		}
	}
	return (last - first) / scrapes, nil
}

// enough is how many requests a window holds in which allocations are counted, so that the lots do not
// matter. A slow workload gets four times the window instead.
const enough = 40_000

// countAllocations counts in windows that adjoin: what is counted late in one is missing in the next.
func (f *field) countAllocations(ctx context.Context, s *report.Section, r *contender.Running, window time.Duration, own float64) error {
	if !r.HasMetrics {
		return nil
	}
	before, err := r.Allocations(ctx)
	if err != nil {
		return err
	}
	answered, err := f.upstream.Answered(ctx)
	if err != nil {
		return err
	}
	for range windows {
		var then int64
		for passed := time.Duration(0); passed < 4*window && then-answered < enough; passed += window {
			if err := wait(ctx, window); err != nil {
				return err
			}
			if then, err = f.upstream.Answered(ctx); err != nil {
				return err
			}
		}
		after, err := r.Allocations(ctx)
		if err != nil {
			return err
		}
		s.Probes = append(s.Probes, report.Probe{
			Contender: r.Name, Kind: report.Allocations, Requests: then - answered, Count: after - before - own,
		})
		before, answered = after, then
	}
	return nil
}

func (f *field) countCalls(ctx context.Context, s *report.Section, r *contender.Running, window time.Duration) error {
	if f.tracer.Name == "" {
		return nil
	}
	for range windows {
		calls, done, err := f.tracer.Count(ctx, r.PIDs(), window, func() (int64, error) { return f.upstream.Answered(ctx) })
		if err != nil {
			return err
		}
		s.Probes = append(s.Probes, report.Probe{
			Contender: r.Name, Kind: report.SystemCalls, Requests: done, Count: float64(calls.Total), ByName: calls.ByName,
		})
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
