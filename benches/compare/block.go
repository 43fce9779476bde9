package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/contender"
	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/proc"
	"github.com/Bunty9/ferryman/benches/compare/report"
	"github.com/Bunty9/ferryman/loadtest/machine"
	"github.com/Bunty9/ferryman/loadtest/result"
)

const (
	// maxRepeats is how often a block is measured again because others took too much of the machine.
	// After it the block counts as it is, and the report says so.
	maxRepeats = 3
	// maxFailed is the share of requests without an answer that a block may have.
	maxFailed = 0.01
	// maxQueue is the median response time in microseconds at a fixed rate from which on requests pile
	// up: the contender cannot keep the rate, and what it costs then is what it costs saturated.
	maxQueue = 50_000
)

// measure measures everybody against the reference, then what is counted.
func (f *field) measure(ctx context.Context, s *report.Section) error {
	ref := f.reference()
	for i, r := range f.running {
		if r == ref {
			continue
		}
		if err := f.alternate(ctx, s, ref, r, i%2 == 1); err != nil {
			return err
		}
	}
	if s.Rate > 0 {
		return nil
	}
	for _, r := range f.running {
		if err := f.probe(ctx, s, r); err != nil {
			return fmt.Errorf("%s: %s: %w", f.w.name, r.Name, err)
		}
	}
	return nil
}

// alternate measures ref and other in pairs.
func (f *field) alternate(ctx context.Context, s *report.Section, ref, other *contender.Running, swap bool) error {
	of := [2]*contender.Running{ref, other}
	var costs [2]float64
	for pair := range f.o.pairs {
		for _, i := range turn(pair, swap) {
			block, err := f.settled(ctx, of[i], *s)
			if err != nil {
				return fmt.Errorf("%s %s: %s: %w", f.w.name, s.Load, of[i].Name, err)
			}
			block.Against, block.Pair = of[1-i].Name, pair
			s.Blocks = append(s.Blocks, block)
			costs[i] += block.CPUPerRequest() / float64(f.o.pairs)
		}
	}
	f.logf("%s %s: %s %.1f us, %s %.1f us", f.w.name, s.Load, ref.Name, costs[0], other.Name, costs[1])
	return nil
}

// turn is the order of the two in a pair, so that pairs come as A B B A, or as B A A B if swap. What
// drifts slowly hits both alike.
func turn(pair int, swap bool) [2]int {
	if (pair%2 == 1) != swap {
		return [2]int{1, 0}
	}
	return [2]int{0, 1}
}

// settled measures a block, again if it was disturbed, and returns the one that was disturbed least.
func (f *field) settled(ctx context.Context, r *contender.Running, s report.Section) (report.Block, error) {
	var best report.Block
	for repeated := 0; ; repeated++ {
		b, err := f.once(ctx, r, s)
		if err != nil {
			return b, err
		}
		if repeated == 0 || b.StolenShare+b.ForeignShare < best.StolenShare+best.ForeignShare {
			best = b
		}
		if !best.Disturbed() || repeated == f.o.repeats {
			best.Repeated = repeated
			return best, nil
		}
	}
}

// reading is what the clocks said at one moment.
type reading struct {
	at        time.Time
	contender time.Duration
	upstream  time.Duration
	ours      time.Duration // of all processes that take part
	everybody time.Duration
	ticks     machine.Ticks
	err       error
}

// pids are the processes that take part in a block.
type pids struct{ contender, upstream, generator []int }

func (p pids) read() (r reading) {
	r.at, r.ticks, r.everybody = time.Now(), machine.Clock(), proc.Busy()
	var generator time.Duration
	var errs [3]error
	r.contender, errs[0] = proc.CPU(p.contender)
	r.upstream, errs[1] = proc.CPU(p.upstream)
	generator, errs[2] = proc.CPU(p.generator)
	r.err = errors.Join(errs[:]...)
	r.ours = r.contender + r.upstream + generator + machine.ProcessTime()
	return r
}

// into fills in what a block's two readings tell.
func (first reading) into(b *report.Block, last reading) {
	window := last.at.Sub(first.at)
	b.WindowS = window.Seconds()
	b.CPUS = (last.contender - first.contender).Seconds()
	b.UpstreamS = (last.upstream - first.upstream).Seconds()
	b.StolenShare, _ = last.ticks.StolenSince(first.ticks) // unknown counts as none
	foreign := (last.everybody - first.everybody) - (last.ours - first.ours)
	b.ForeignShare = max(0, foreign.Seconds()/(b.WindowS*float64(runtime.NumCPU())))
}

// once measures one block.
func (f *field) once(ctx context.Context, r *contender.Running, s report.Section) (report.Block, error) {
	length := f.length(s.Rate)
	block := report.Block{Contender: r.Name, AtS: time.Since(f.report.Started).Seconds()}
	p := pids{contender: r.PIDs(), upstream: f.upstream.PIDs(), generator: f.generator.PIDs()}
	var first, last reading
	memory := make(chan int64, 1)
	outcome, err := f.generator.Run(ctx, f.job(r, s, length), load.Hooks{
		Begun: func() {
			first = p.read()
			// While all connections are in use, but not so late that it falls into the last reading.
			time.AfterFunc(length*9/10, func() {
				kib, _ := proc.PSS(p.contender) // of a process that is gone: the readings tell
				memory <- kib
			})
		},
		Ended: func() { last = p.read() },
	})
	if err != nil {
		return block, fmt.Errorf("%w: %s", err, r.Tail())
	}
	if first.at.IsZero() || last.at.IsZero() {
		return block, fmt.Errorf("the load ended early: %s", r.Tail())
	}
	block.Outcome, block.PSSKiB = outcome, <-memory
	if err := errors.Join(first.err, last.err); err != nil {
		return block, fmt.Errorf("%w: %s", err, r.Tail())
	}
	first.into(&block, last)
	block.Refused = refusal(outcome)
	return block, nil
}

// unanswered are the kinds of failure that a busy or closing server shows; all others are wrong
// answers.
var unanswered = []string{result.Timeout.String(), result.Reset.String(), result.Connect.String()}

// refusal says why a block must not count.
func refusal(o load.Outcome) string {
	if o.Requests == 0 || o.Right == 0 {
		return "no right answer"
	}
	if o.Latency != nil && o.Latency.P50 > maxQueue {
		return fmt.Sprintf("cannot keep the rate: half of the requests waited over %d ms", o.Latency.P50/1000)
	}
	failed := int64(0)
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(o.Wrong)) {
		if !slices.Contains(unanswered, kind) {
			return fmt.Sprintf("%d answers were wrong (%s)", o.Wrong[kind], kind)
		}
		failed += o.Wrong[kind]
		kinds = append(kinds, kind)
	}
	if share := float64(failed) / float64(o.Requests); share > maxFailed {
		return fmt.Sprintf("%.0f%% of the requests had no answer (%s)", 100*share, strings.Join(kinds, ", "))
	}
	return ""
}
