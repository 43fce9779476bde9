//go:build !linux

package machine

import (
	"syscall"
	"time"
)

// ProcessTime is the processor time of this process, user and system.
func ProcessTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ThreadTime is not known here: it is zero.
func ThreadTime() time.Duration { return 0 }
