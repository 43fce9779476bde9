package main

import (
	"context"
	"fmt"
	"maps"
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
	// maxStolen is the share of processor time that the hypervisor may take in a block.
	maxStolen = 0.01
	// maxRepeats is how often a block is measured again for that. After it the block counts as it is.
	maxRepeats = 3
	// maxFailed is the share of requests without an answer that a block may have.
	maxFailed = 0.01
	// maxQueue is the median response time in microseconds at a fixed rate from which on requests pile
	// up: the contender does not hold the rate, and what it costs then is what it costs saturated.
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

// settled measures a block, again if too much processor time was stolen.
func (f *field) settled(ctx context.Context, r *contender.Running, s report.Section) (report.Block, error) {
	for repeated := 0; ; repeated++ {
		b, err := f.once(ctx, r, s)
		if err != nil {
			return b, err
		}
		if b.StolenShare <= maxStolen || repeated == maxRepeats {
			b.Repeated = repeated
			return b, nil
		}
	}
}

// reading is what the clocks said at one moment.
type reading struct {
	at        time.Time
	contender time.Duration
	upstream  time.Duration
	ticks     machine.Ticks
	err       error
}

func (f *field) read(pids, upstream []int) (r reading) {
	r.at, r.ticks = time.Now(), machine.Clock()
	if r.contender, r.err = proc.CPU(pids); r.err == nil {
		r.upstream, r.err = proc.CPU(upstream)
	}
	return r
}

// once measures one block.
func (f *field) once(ctx context.Context, r *contender.Running, s report.Section) (report.Block, error) {
	length := f.length(s.Rate)
	block := report.Block{Contender: r.Name, AtS: time.Since(f.report.Started).Seconds()}
	pids, upstream := r.PIDs(), f.upstream.PIDs()
	var first, last reading
	memory := make(chan int64, 1)
	outcome, err := f.generator.Run(ctx, f.job(r, s, length), load.Hooks{
		Begun: func() {
			first = f.read(pids, upstream)
			// While all connections are in use, but not so late that it falls into the last reading.
			time.AfterFunc(length*9/10, func() {
				kib, _ := proc.PSS(pids) // of a process that is gone: the readings tell
				memory <- kib
			})
		},
		Ended: func() { last = f.read(pids, upstream) },
	})
	if err != nil {
		return block, fmt.Errorf("%w: %s", err, r.Tail())
	}
	if first.at.IsZero() || last.at.IsZero() {
		return block, fmt.Errorf("the load ended early: %s", r.Tail())
	}
	block.Outcome, block.PSSKiB = outcome, <-memory
	if first.err != nil || last.err != nil {
		return block, fmt.Errorf("%v %v: %s", first.err, last.err, r.Tail())
	}
	block.WindowS = last.at.Sub(first.at).Seconds()
	block.CPUS = (last.contender - first.contender).Seconds()
	block.UpstreamS = (last.upstream - first.upstream).Seconds()
	block.StolenShare, _ = last.ticks.StolenSince(first.ticks) // unknown counts as none
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
		return fmt.Sprintf("does not hold the rate: half of the requests waited over %d ms", o.Latency.P50/1000)
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
