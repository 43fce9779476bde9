package netloop

import (
	"sync"
	"time"
)

// Stop lets any goroutine end a dial. The zero value is ready for use; after Abort it ends each further one at
// once. A nil Stop never does anything.
type Stop struct {
	mu      sync.Mutex // guards what follows; held while abort is called, so that it is not called later
	aborted bool
	abort   func()
}

// Abort implements Aborter.
func (s *Stop) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aborted = true; s.abort != nil {
		s.abort()
	}
}

// Aim says what Abort calls from here on, nil for nothing. It returns false if it was called before.
func (s *Stop) Aim(abort func()) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abort = abort
	return !s.aborted
}

// graceTime is enough for an executor to take note of what its sockets have, on a machine that is busy, too.
const graceTime = 50 * time.Millisecond

// After is time.AfterFunc for a limit on what a peer does. The process may have been paused, and what the peer
// did meanwhile is seen first: f is called a moment after it was noticed that d is over. It may still be called
// for as long after a Stop of the timer.
func After(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { time.AfterFunc(graceTime, f) })
}
