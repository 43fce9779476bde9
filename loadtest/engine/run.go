package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/loadtest/machine"
	"github.com/Bunty9/ferryman/loadtest/pacer"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// connectLimit is how long the connections may take that are made before the schedule begins.
const connectLimit = 5 * time.Second

// sweepEvery is the grain of timeouts and of a stop.
const sweepEvery = 10 * time.Millisecond

// flushEvery is how often loops hand over what they counted.
const flushEvery = 250 * time.Millisecond

// forever is the time of an end that is not known.
const forever = time.Duration(math.MaxInt64)

// Runner is one run of a Plan. New is the only way to make one.
type Runner struct {
	plan      Plan
	targets   []*target
	schedule  *pacer.Schedule
	collector *result.Collector
	horizon   time.Duration // where the schedule ends: warm-up and duration
	requests  int64         // how many are due before it; without meaning in a closed loop

	begun   chan struct{} // closed when start is set
	start   time.Time     // of the schedule; written before begun is closed, read after
	stopAt  atomic.Int64  // schedule time from which nothing is due any more
	stopped atomic.Bool
	used    atomic.Bool

	dials, open, unsolicited atomic.Int64
	loopTime                 atomic.Int64 // processor time of the loops

	mu    sync.Mutex // guards marks
	marks []result.Mark
}

// Run makes a Runner and runs it.
func Run(ctx context.Context, p Plan) (result.Report, error) {
	r, err := New(p)
	if err != nil {
		return result.Report{}, err
	}
	return r.Run(ctx)
}

// New works out a plan, resolves its hosts, and says what is wrong with it.
func New(p Plan) (*Runner, error) {
	if err := p.complete(); err != nil {
		return nil, err
	}
	s, err := p.schedule()
	if err != nil {
		return nil, err
	}
	r := &Runner{plan: p, schedule: s, horizon: p.Warmup + p.Duration, begun: make(chan struct{})}
	r.requests = s.Count(r.horizon)
	r.stopAt.Store(int64(forever))
	layout := result.Layout{Warmup: p.Warmup, Duration: p.Duration, RefusalLimit: p.RefusalLimit}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for i, t := range p.Targets {
		compiled, err := p.newTarget(ctx, i, t)
		if err != nil {
			return nil, err
		}
		r.targets = append(r.targets, compiled)
		layout.Targets = append(layout.Targets, compiled.name)
	}
	r.collector = result.NewCollector(layout, p.Loops)
	return r, nil
}

// executor sends the requests of a Runner.
type executor interface {
	// connect makes the connections and returns how many there are. The error of one that failed
	// is returned beside it.
	connect(ctx context.Context) (int, error)
	// run keeps to the schedule until it ends and everything that is out has an outcome.
	run()
	// close ends all connections.
	close()
}

// Run connects, keeps to the schedule and returns the report, not yet judged. When ctx ends or Stop
// is called it stops early and still reports. An error means that there was nothing to report. Run
// may be called once.
func (r *Runner) Run(ctx context.Context) (result.Report, error) {
	if r.used.Swap(true) {
		return result.Report{}, errors.New("a Runner runs once")
	}
	ex, err := r.newExecutor()
	if err != nil {
		return result.Report{}, err
	}
	defer ex.close()
	established := r.plan.Connections
	if !r.plan.NoKeepAlive {
		var dialErr error
		established, dialErr = ex.connect(ctx)
		if established == 0 {
			return result.Report{}, fmt.Errorf("no connection to %s: %w: is it running?", r.targets[0].url.Host, dialErr)
		}
	}
	ticks, process := machine.Clock(), machine.ProcessTime()
	r.start = time.Now()
	close(r.begun)
	release := context.AfterFunc(ctx, r.Stop)
	ex.run()
	release()
	return r.report(established, ticks, machine.ProcessTime()-process), nil
}

// Stop ends the schedule early. It may be called from any goroutine, more than once, and before Run.
func (r *Runner) Stop() {
	if r.stopped.Swap(true) {
		return
	}
	at := time.Duration(0)
	if r.started() {
		// A little ahead, so that all loops agree on which request was the last.
		at = time.Since(r.start) + 20*time.Millisecond
	}
	r.stopAt.Store(int64(at))
}

func (r *Runner) started() bool {
	select {
	case <-r.begun:
		return true
	default:
		return false
	}
}

// end is the schedule time at which nothing is due any more.
func (r *Runner) end() time.Duration { return min(r.horizon, time.Duration(r.stopAt.Load())) }

// Mark notes a moment under a name and returns it. Before the schedule begins, the moment is its
// beginning. It may be called from any goroutine.
func (r *Runner) Mark(name string) result.Mark {
	m := result.Mark{Name: name, AtS: r.Elapsed().Seconds()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, m)
	return m
}

// Elapsed is the time since the end of the warm-up, negative within it.
func (r *Runner) Elapsed() time.Duration {
	if !r.started() {
		return -r.plan.Warmup
	}
	return time.Since(r.start) - r.plan.Warmup
}

// Collector gives access to the numbers of a run that goes on.
func (r *Runner) Collector() *result.Collector { return r.collector }

// OpenConnections are those that are established now; Dials are all that were tried.
func (r *Runner) OpenConnections() int64 { return r.open.Load() }

// Dials is how many connections were tried so far.
func (r *Runner) Dials() int64 { return r.dials.Load() }

func (r *Runner) report(established int, before machine.Ticks, used time.Duration) result.Report {
	elapsed := max(r.end()-r.plan.Warmup, 0)
	kind := result.OpenLoop
	if r.plan.Capacity {
		kind = result.Capacity
	}
	report := r.collector.Report(kind, elapsed)
	report.Started = r.start.UTC()
	report.Interrupted = r.stopped.Load()
	report.Setup = r.setup()
	report.Connections = result.ConnectionCounts{
		Asked: r.plan.Connections, Established: established, Dials: r.dials.Load(), Unsolicited: r.unsolicited.Load(),
	}
	report.Machine = machine.Describe()
	report.Stolen, _ = machine.Clock().StolenSince(before) // unknown counts as none
	report.Cost = result.Cost{CPUSeconds: used.Seconds(), LoopSeconds: time.Duration(r.loopTime.Load()).Seconds()}
	all := float64(r.schedule.Count(r.end()))
	if r.plan.Capacity {
		all = float64(report.Total.Requests) * r.end().Seconds() / max(elapsed.Seconds(), 1e-9)
	}
	if all > 0 {
		report.Cost.CPUPerReqUS = report.Cost.CPUSeconds * 1e6 / all
		report.Cost.LoopPerReqUS = report.Cost.LoopSeconds * 1e6 / all
	}
	r.mu.Lock()
	report.Marks = append(report.Marks, r.marks...)
	r.mu.Unlock()
	return report
}

func (r *Runner) setup() result.Setup {
	p := r.plan
	s := result.Setup{
		Rate: p.Rate, Connections: p.Connections, Loops: p.Loops, DurationS: p.Duration.Seconds(), WarmupS: p.Warmup.Seconds(),
		TimeoutS: p.Timeout.Seconds(), RefusalMS: 50, Mode: p.Mode.String(), Engine: p.Executor, Protocol: p.Protocol,
		KeepAlive: !p.NoKeepAlive,
	}
	if p.Executor == Goroutines {
		s.Loops = p.Connections * p.Streams
	}
	if p.RefusalLimit > 0 {
		s.RefusalMS = float64(p.RefusalLimit) / 1e6
	}
	for i, t := range r.targets {
		s.URLs = append(s.URLs, p.Targets[i].URL)
		if t.url.TLS && i == 0 {
			s.Protocol += " over TLS"
		}
	}
	return s
}

// Loops is how many loops the run has.
func (r *Runner) Loops() int { return r.plan.Loops }
