package result

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Collector gathers what the Recorders of a run count.
type Collector struct {
	layout    Layout
	recorders []*Recorder

	mu     sync.Mutex // guards what follows
	totals []*tally
	all    *tally // over all targets
	recent *tally // the same, since the last Collect
	lag    *hdrhistogram.Histogram
}

// NewCollector makes a Collector and a Recorder for each of the loops.
func NewCollector(l Layout, loops int) *Collector {
	c := &Collector{layout: l, all: newTally(), recent: newTally(), lag: newHistogram()}
	for range loops {
		c.recorders = append(c.recorders, newRecorder(l))
	}
	for range l.Targets {
		c.totals = append(c.totals, newTally())
	}
	return c
}

// Recorder is that of loop i.
func (c *Collector) Recorder(i int) *Recorder { return c.recorders[i] }

// Live is a look at a run that goes on.
type Live struct {
	Requests, Errors, Bad int64         // since the end of the warm-up
	P50, P99, P999        time.Duration // response times
	LagP99                time.Duration
	Recent                Recent
	Targets               []LiveTarget
}

// Recent is what was collected since the Collect before.
type Recent struct {
	Requests, Errors int64
	P50, P99         time.Duration // response times
}

// LiveTarget is one target so far.
type LiveTarget struct {
	Name     string
	Classes  [Classes]int64
	Statuses map[int]int64
	Bad      int64
	LastBad  time.Duration // intended time of the last bad request since the end of the warm-up, -1 if none
}

// Collect merges what the recorders have flushed, returns the state of the run and begins a new
// stretch of Recent, which is therefore meaningful to one caller only.
func (c *Collector) Collect() Live {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gatherLocked()
	live := c.liveLocked()
	c.recent.reset()
	return live
}

// Peek is Collect for everybody else: Recent goes on. Either has to be called more often than the
// recorders flush for their numbers to be fresh.
func (c *Collector) Peek() Live {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gatherLocked()
	return c.liveLocked()
}

func (c *Collector) gatherLocked() {
	for _, r := range c.recorders {
		select {
		case b := <-r.full:
			c.mergeLocked(b)
			b.reset()
			r.empty <- b // has room: see Recorder
		default:
		}
	}
}

func (c *Collector) mergeLocked(b *batch) {
	for i, t := range b.targets {
		c.totals[i].add(t)
		c.all.add(t)
		c.recent.add(t)
	}
	c.lag.Merge(b.lag)
}

func (c *Collector) liveLocked() Live {
	live := Live{
		Requests: c.all.requests(), Errors: c.all.errors(), Bad: c.all.bad,
		P50: quantile(c.all.response, 50), P99: quantile(c.all.response, 99), P999: quantile(c.all.response, 99.9),
		LagP99: quantile(c.lag, 99),
		Recent: Recent{
			Requests: c.recent.requests(), Errors: c.recent.errors(),
			P50: quantile(c.recent.response, 50), P99: quantile(c.recent.response, 99),
		},
	}
	for i, t := range c.totals {
		live.Targets = append(live.Targets, LiveTarget{
			Name: c.layout.Targets[i], Classes: t.classes, Statuses: t.byStatus(), Bad: t.bad, LastBad: t.lastBad,
		})
	}
	return live
}

// Distributions are the times so far: response and service by target, send lag over all.
func (c *Collector) Distributions() (response, service []Distribution, lag Distribution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.totals {
		response = append(response, distribution(t.response))
		service = append(service, distribution(t.service))
	}
	return response, service, distribution(c.lag)
}

// byStatus are the answers by status code.
func (t *tally) byStatus() map[int]int64 {
	m := map[int]int64{}
	for status, n := range t.statuses {
		if n > 0 && status > 0 {
			m[status] = n
		}
	}
	return m
}

// finish merges everything that is left. The loops must have ended.
func (c *Collector) finish() (lines []line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gatherLocked()
	for range c.layout.Targets {
		lines = append(lines, newLine(c.layout.Duration))
	}
	for _, r := range c.recorders {
		c.mergeLocked(r.current)
		r.current.reset()
		for i := range lines {
			lines[i].add(r.lines[i])
		}
	}
	return lines
}

// Targets are the names, in the order of all other lists.
func (c *Collector) Targets() []string { return c.layout.Targets }
