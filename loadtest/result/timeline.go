package result

import "time"

// A timeline has buckets of 10 ms, or of a multiple where that would be too many.
const (
	bucketWidth = 10 * time.Millisecond
	maxBuckets  = 100_000
)

// bucket is what became of the requests that were due within it.
type bucket struct {
	ok, refused, bad uint32
	worst            uint32 // longest response time in microseconds
}

// line is the timeline of one target.
type line struct {
	width   time.Duration
	buckets []bucket
}

// widthFor is the width of the buckets of a run that lasts d.
func widthFor(d time.Duration) time.Duration {
	return bucketWidth * max(1, (d+maxBuckets*bucketWidth-1)/(maxBuckets*bucketWidth))
}

func newLine(d time.Duration) line {
	w := widthFor(d)
	return line{width: w, buckets: make([]bucket, (d+w-1)/w)}
}

func (l *line) count(s *Sample, at, refusalLimit time.Duration) {
	i := int(at / l.width)
	if i >= len(l.buckets) {
		return
	}
	b := &l.buckets[i]
	switch {
	case s.Class == OK:
		b.ok++
	case s.bad(refusalLimit):
		b.bad++
	default:
		b.refused++
	}
	b.worst = max(b.worst, uint32(min(max(s.Done-s.Intended, 0), time.Hour)/time.Microsecond))
}

func (l *line) add(o line) {
	for i, b := range o.buckets {
		mine := &l.buckets[i]
		mine.ok += b.ok
		mine.refused += b.refused
		mine.bad += b.bad
		mine.worst = max(mine.worst, b.worst)
	}
}

// Timeline shows a run in buckets of equal width, by the time at which requests were due. The
// columns of all targets are equally long.
type Timeline struct {
	BucketMS float64          `json:"bucket_ms"`
	Targets  []TimelineTarget `json:"targets"`
}

// TimelineTarget is the timeline of one target, a value per bucket.
type TimelineTarget struct {
	Name    string   `json:"name"`
	OK      []uint32 `json:"ok"`
	Refused []uint32 `json:"refused"` // in time
	Bad     []uint32 `json:"bad"`
	WorstUS []uint32 `json:"worst_us"` // longest response time
}

// columns turns buckets around and leaves out those after until.
func (l *line) columns(name string, until time.Duration) TimelineTarget {
	n := min(len(l.buckets), int((until+l.width-1)/l.width))
	t := TimelineTarget{
		Name: name, OK: make([]uint32, n), Refused: make([]uint32, n), Bad: make([]uint32, n), WorstUS: make([]uint32, n),
	}
	for i, b := range l.buckets[:n] {
		t.OK[i], t.Refused[i], t.Bad[i], t.WorstUS[i] = b.ok, b.refused, b.bad, b.worst
	}
	return t
}
