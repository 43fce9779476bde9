package netloop

import "sync/atomic"

// expiry is what may still be read after a read deadline has passed. A process that was paused, on a machine too
// busy or by a debugger, notices the deadline late: what is in the socket at the first check counts as in time. What
// comes after that check does not, however often somebody reads. A deadline that lay in the past when it was set only
// wakes a coroutine, and nothing counts.
type expiry struct {
	// left is 0 before the check, then one more than the bytes that still count; wakeOnly for a deadline that had
	// passed when it was set.
	left atomic.Int64
}

const wakeOnly = -1

// set is for a new deadline.
func (e *expiry) set(passed bool) {
	if passed {
		e.left.Store(wakeOnly)
	} else {
		e.left.Store(0)
	}
}

// readable reports whether a read may go on although its deadline has passed.
func (e *expiry) readable(fd int) bool {
	left := e.left.Load()
	if left == 0 {
		left = int64(unread(fd)) + 1
		e.left.CompareAndSwap(0, left) // else there is a new deadline
	}
	return left > 1 || left == 1 && !quiet(fd) && unread(fd) == 0 // an end of stream, or an error
}

// limit shortens the buffer of a read to what counts.
func (e *expiry) limit(b []byte) []byte {
	if left := e.left.Load(); left > 1 && left <= int64(len(b)) {
		return b[:left-1]
	}
	return b
}

// consumed notes the bytes of a read.
func (e *expiry) consumed(n int) {
	if left := e.left.Load(); left > 1 {
		e.left.CompareAndSwap(left, left-int64(n))
	}
}
