package netloop

import (
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// inbox is how other goroutines reach a loop.
type inbox struct {
	wakefd int // an eventfd in the loop's set

	mu        sync.Mutex // guards what follows
	posted    []func()
	signalled bool // wakefd was written since posted was taken
	ended     bool
}

// wakeup is 1: nobody reads the eventfd, it only counts up, and must never be full.
var wakeup = binary.NativeEndian.AppendUint64(nil, 1)

// post has f called by the loop's goroutine, between coroutines. It returns false if the loop has
// ended. It may be called from any goroutine.
func (m *inbox) post(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	m.posted = append(m.posted, f)
	if !m.signalled {
		m.signalled = true
		unix.Write(m.wakefd, wakeup)
	}
	return true
}

func (m *inbox) takePosted() {
	m.mu.Lock()
	posted := m.posted
	m.posted, m.signalled = nil, false
	m.mu.Unlock()
	for _, f := range posted {
		f()
	}
}

// end takes no more from here on, unless there is something left to be taken.
func (m *inbox) end() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = len(m.posted) == 0
	return m.ended
}
