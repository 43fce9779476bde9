package result

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// batch is what one loop counted since it last handed a batch over.
type batch struct {
	targets []*tally
	lag     *hdrhistogram.Histogram
}

func newBatch(targets int) *batch {
	b := &batch{lag: newHistogram()}
	for range targets {
		b.targets = append(b.targets, newTally())
	}
	return b
}

func (b *batch) reset() {
	for _, t := range b.targets {
		t.reset()
	}
	b.lag.Reset()
}

// Recorder belongs to one loop. Two batches go round between it and the Collector: the loop fills
// one while the other is merged, so neither ever waits.
type Recorder struct {
	warmup, refusalLimit time.Duration
	current              *batch
	full, empty          chan *batch
	lines                []line
}

func newRecorder(l Layout) *Recorder {
	r := &Recorder{
		warmup: l.Warmup, refusalLimit: l.refusalLimit(), current: newBatch(len(l.Targets)),
		full: make(chan *batch, 1), empty: make(chan *batch, 1),
	}
	r.empty <- newBatch(len(l.Targets))
	for range l.Targets {
		r.lines = append(r.lines, newLine(l.Duration))
	}
	return r
}

// Record counts a request. It allocates nothing.
func (r *Recorder) Record(s Sample) {
	at := s.Intended - r.warmup
	if at < 0 {
		return
	}
	r.current.targets[s.Target].count(&s, at, r.refusalLimit)
	if s.Lag != NoLag {
		put(r.current.lag, s.Lag)
	}
	r.lines[s.Target].count(&s, at, r.refusalLimit)
}

// Flush hands over what was counted, unless the Collector still has the last batch: then it goes
// with the next.
func (r *Recorder) Flush() {
	select {
	case next := <-r.empty:
		r.full <- r.current // has room: there are two batches and the Collector has emptied one
		r.current = next
	default:
	}
}
