// Package suite holds ferryman to its promises while its upstreams are killed, paused, cut off, slow or
// wrong, in containers on networks of their own:
//
//	go test ./loadtest/suite -tags integration
//
// It needs a Docker engine and pulls nothing. Without an engine it says so and passes; LAB_REQUIRE_DOCKER=1
// makes that a failure. What is here without a build tag are the judgements, which are arithmetic on a report
// of the load generator.
package suite

import (
	"fmt"
	"math"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
)

// window is a part of a run, in seconds since the end of the warm-up. A negative end is that of the run.
type window struct{ from, to float64 }

// counts are what became of the requests that were due in a window. Slow is the share of its buckets in
// which a request took longer than a limit.
type counts struct {
	ok, refused, bad int
	slow             float64
}

func (c counts) String() string {
	return fmt.Sprintf("%d right, %d refused, %d bad, %.1f%% of the buckets slow", c.ok, c.refused, c.bad, 100*c.slow)
}

// within adds up the buckets of one target that lie wholly in w.
func within(r *result.Report, target int, w window, limit time.Duration) (c counts) {
	t := r.Timeline.Targets[target]
	width := r.Timeline.BucketMS / 1000
	first, last := int(math.Ceil(w.from/width)), len(t.OK)
	if w.to >= 0 {
		last = min(last, int(w.to/width))
	}
	buckets, slow := 0, 0
	for i := max(first, 0); i < last; i++ {
		c.ok += int(t.OK[i])
		c.refused += int(t.Refused[i])
		c.bad += int(t.Bad[i])
		if t.OK[i]+t.Refused[i]+t.Bad[i] == 0 {
			continue
		}
		buckets++
		if time.Duration(t.WorstUS[i])*time.Microsecond > limit {
			slow++
		}
	}
	if buckets > 0 {
		c.slow = float64(slow) / float64(buckets)
	}
	return c
}

// markAt is when a mark was made; an error if it was not.
func markAt(r *result.Report, name string) (float64, error) {
	for _, m := range r.Marks {
		if m.Name == name {
			return m.AtS, nil
		}
	}
	return 0, fmt.Errorf("the report has no mark %q", name)
}

// until is the part of a run before a mark. What was due a moment earlier may have been sent, or answered, only
// after it: as late as the generator ever was, and as long as an answer may take.
func until(r *result.Report, mark float64) window {
	late := time.Duration(r.SendLag.MaxUS)*time.Microsecond + 50*time.Millisecond
	return window{0, mark - late.Seconds()}
}

// failover is how long after the fault the last bad request was due; zero if none was.
func failover(r *result.Report, target int, fault float64) time.Duration {
	last := r.Targets[target].LastBadS
	if last == nil || *last < fault {
		return 0
	}
	return time.Duration((*last - fault) * float64(time.Second))
}
