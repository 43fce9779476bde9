package result

import "time"

// Class is what became of a request.
type Class uint8

// The classes. Everything but OK counts as an error, and everything but OK and a timely Refused as
// bad.
const (
	OK        Class = iota
	Refused         // the proxy's own 503: Retry-After and the body "upstream unavailable"
	Status          // a whole answer with a status that was not expected
	WrongBody       // a whole answer with the right status and another body than expected
	Truncated       // the connection ended within the answer
	Malformed       // bytes that are no HTTP answer, or more of them than the answer has
	Reset           // the connection was reset, or closed without a byte of an answer
	Timeout         // no whole answer in time, or never sent because no connection came free
	Connect         // no connection could be made
	Classes         // how many there are
)

var classNames = [Classes]string{"ok", "refused", "status", "wrong_body", "truncated", "malformed", "reset", "timeout", "connect"}

func (c Class) String() string { return classNames[c] }

// NotSent is Sample.Sent of a request that no connection came free for, and NoLag is Sample.Lag of
// one that no connection was idle for.
const (
	NotSent = time.Duration(-1)
	NoLag   = time.Duration(-1)
)

// Sample is one request. Times are since the start of the schedule, warm-up included.
type Sample struct {
	Target   int
	Class    Class
	Status   int // of the answer, 0 if there was none
	Bytes    int64
	Intended time.Duration // when it was due
	Sent     time.Duration // when the generator began with it, by dialling or writing; or NotSent
	Done     time.Duration // when its outcome was known
	Lag      time.Duration // from when it could have been sent to Sent; or NoLag
}

// Layout is what a Collector needs to know of a run.
type Layout struct {
	Targets []string      // names
	Warmup  time.Duration // requests due before it are not counted
	// Duration bounds the timeline; requests that are due later are counted but not drawn.
	Duration time.Duration
	// RefusalLimit is how long the proxy's own 503 may take; a slower one is bad. Zero or less: 50 ms.
	RefusalLimit time.Duration
}

func (l Layout) refusalLimit() time.Duration {
	if l.RefusalLimit <= 0 {
		return 50 * time.Millisecond
	}
	return l.RefusalLimit
}

// bad reports whether a caller would call it a failure: anything but a right answer or a refusal
// in time.
func (s *Sample) bad(limit time.Duration) bool {
	return s.Class != OK && (s.Class != Refused || s.Done-s.Intended > limit)
}
