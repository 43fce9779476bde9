package result

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of all histograms, in microseconds: 1 us to 60 s with three digits.
const (
	histogramMin    = 1
	histogramMax    = int64(60 * time.Second / time.Microsecond)
	histogramDigits = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(histogramMin, histogramMax, histogramDigits)
}

// put records d, clamped to the histogram's range.
func put(h *hdrhistogram.Histogram, d time.Duration) {
	us := min(max(int64(d/time.Microsecond), 0), histogramMax)
	_ = h.RecordValue(us) // in range: cannot fail
}

// maxStatus is one over the largest status.
const maxStatus = 600

// never is the time of a bad request where there was none.
const never = time.Duration(-1)

// tally is what is counted for one target.
type tally struct {
	response, service *hdrhistogram.Histogram
	classes           [Classes]int64
	statuses          [maxStatus]int64
	bytes             int64
	unsent            int64
	bad               int64
	firstBad, lastBad time.Duration // by intended time, since the end of the warm-up
}

func newTally() *tally {
	return &tally{response: newHistogram(), service: newHistogram(), firstBad: never, lastBad: never}
}

// count adds one request, at is its intended time since the end of the warm-up.
func (t *tally) count(s *Sample, at, refusalLimit time.Duration) {
	put(t.response, s.Done-s.Intended)
	if s.Sent == NotSent {
		t.unsent++
	} else {
		put(t.service, s.Done-s.Sent)
	}
	t.classes[s.Class]++
	t.statuses[s.Status]++
	t.bytes += s.Bytes
	if !s.bad(refusalLimit) {
		return
	}
	t.bad++
	t.lastBad = max(t.lastBad, at)
	if t.firstBad == never || at < t.firstBad {
		t.firstBad = at
	}
}

// add merges o, which is left as it is.
func (t *tally) add(o *tally) {
	t.response.Merge(o.response)
	t.service.Merge(o.service)
	for i, n := range o.classes {
		t.classes[i] += n
	}
	for i, n := range o.statuses {
		t.statuses[i] += n
	}
	t.bytes += o.bytes
	t.unsent += o.unsent
	t.bad += o.bad
	t.lastBad = max(t.lastBad, o.lastBad)
	if t.firstBad == never || (o.firstBad != never && o.firstBad < t.firstBad) {
		t.firstBad = o.firstBad
	}
}

// reset empties the tally and keeps its memory.
func (t *tally) reset() {
	t.response.Reset()
	t.service.Reset()
	*t = tally{response: t.response, service: t.service, firstBad: never, lastBad: never}
}

// requests is how many were counted.
func (t *tally) requests() (n int64) {
	for _, c := range t.classes {
		n += c
	}
	return n
}

// errors is how many of them got no right answer.
func (t *tally) errors() int64 { return t.requests() - t.classes[OK] }
