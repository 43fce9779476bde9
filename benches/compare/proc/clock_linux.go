package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is the processor time of a process with all its threads, to the nanosecond, from its CPU-time
// clock (clock_getcpuclockid(3)): /proc/PID/stat would round it to 10 ms.
func clock(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED: user and system time, as the scheduler counts them
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|sched), &t)
	return time.Duration(t.Nano()), err
}
