package netloop

import "sync/atomic"

// lastLook is about a read deadline that has passed. A process that was paused, on a machine too busy or by a
// debugger, notices that late, and what it then finds in the socket came in time as far as anybody can tell: it
// counts. What comes after that look does not, however often somebody reads. A deadline that had passed when it was set
// is there to wake a strand, and for it nothing counts.
type lastLook struct {
	// left is 0 before the look, then one more than the bytes that still count; wakes for a deadline that wakes.
	left atomic.Int64
}

const wakes = -1

// set is for a new deadline.
func (l *lastLook) set(passed bool) {
	if passed {
		l.left.Store(wakes)
	} else {
		l.left.Store(0)
	}
}

// finds reports whether a read may go on although its deadline has passed.
func (l *lastLook) finds(fd int) bool {
	left := l.left.Load()
	if left == 0 {
		left = int64(unread(fd)) + 1
		l.left.CompareAndSwap(0, left) // else there is a new deadline
	}
	return left > 1 || left == 1 && !quiet(fd) && unread(fd) == 0 // an end of stream, or an error
}

// bound shortens the buffer of a read to what counts.
func (l *lastLook) bound(b []byte) []byte {
	if left := l.left.Load(); left > 1 && left <= int64(len(b)) {
		return b[:left-1]
	}
	return b
}

// took notes the bytes of a read.
func (l *lastLook) took(n int) {
	if left := l.left.Load(); left > 1 {
		l.left.CompareAndSwap(left, left-int64(n))
	}
}
