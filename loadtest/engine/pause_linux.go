package engine

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pause sleeps on this thread, to the precision of the kernel's timers. It may end early.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // EINTR: early
}

// pauseUntold is pause without a word to the scheduler, which would take the processor away and give it
// back. That costs as much as the sleep.
func pauseUntold(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // EINTR: early
}
