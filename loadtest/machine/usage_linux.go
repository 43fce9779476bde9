package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessTime is the processor time of this process, user and system.
func ProcessTime() time.Duration { return usage(unix.RUSAGE_SELF) }

// ThreadTime is the processor time of the calling thread; lock the goroutine to it first.
func ThreadTime() time.Duration { return usage(unix.RUSAGE_THREAD) }

func usage(who int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
