package redteam

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process holds and has used. It is zero where there is no such process, or no /proc.
type usage struct {
	resident, peak float64       // MiB
	processor      time.Duration // user and system
}

// ticks are the units of /proc/PID/stat: USER_HZ, which is 100 wherever Linux has users.
const tick = 10 * time.Millisecond

func look(pid int) (u usage) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		key, rest, _ := strings.Cut(line, ":")
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		kib, _ := strconv.ParseFloat(value, 64)
		switch key {
		case "VmRSS":
			u.resident = kib / 1024
		case "VmHWM":
			u.peak = kib / 1024
		}
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The second field is the name in brackets and may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) > 12 {
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		u.processor = time.Duration(user+system) * tick
	}
	return u
}
