package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps on this thread, to the precision of the kernel's timers. It may end early.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // EINTR: early
}
