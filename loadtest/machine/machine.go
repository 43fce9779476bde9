// Package machine tells what machine a measurement was made on, how much processor time a process
// or a thread used, and how much of it the hypervisor stole. On systems other than Linux it knows
// less and says so with zero values.
//
//	before := machine.Clock()
//	...
//	share, known := machine.Clock().StolenSince(before)
package machine

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Environment is what a number depends on.
type Environment struct {
	OS           string  `json:"os"`
	Architecture string  `json:"architecture"`
	Kernel       string  `json:"kernel,omitempty"`
	Processor    string  `json:"processor,omitempty"`
	Processors   int     `json:"processors"` // that this process may use
	MemoryMiB    int     `json:"memory_mib,omitempty"`
	Go           string  `json:"go"`
	LoadAverage  float64 `json:"load_average"` // of the last minute
}

// Describe reads the environment now.
func Describe() Environment {
	e := Environment{
		OS: runtime.GOOS, Architecture: runtime.GOARCH, Processors: runtime.NumCPU(), Go: runtime.Version(),
		Kernel:    firstLine("/proc/sys/kernel/osrelease"),
		Processor: keyed("/proc/cpuinfo", "model name"),
	}
	if load, _, ok := strings.Cut(firstLine("/proc/loadavg"), " "); ok {
		e.LoadAverage, _ = strconv.ParseFloat(load, 64) // unknown: zero
	}
	if kib, _, ok := strings.Cut(keyed("/proc/meminfo", "MemTotal"), " "); ok {
		n, _ := strconv.Atoi(kib)
		e.MemoryMiB = n / 1024
	}
	return e
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// keyed is the value of the first "key : value" line.
func keyed(path, key string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Ticks is a reading of the machine's processor time, summed over processors.
type Ticks struct {
	All, Stolen uint64
}

// Clock reads the processor time of the whole machine. It is zero where there is no /proc/stat.
func Clock() Ticks {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Ticks{}
	}
	return parseStat(string(b))
}

// parseStat reads the line "cpu user nice system idle iowait irq softirq steal guest guest_nice".
// The last two are already part of user and nice.
func parseStat(text string) Ticks {
	line, _, _ := strings.Cut(text, "\n")
	columns := strings.Fields(line)
	if len(columns) < 9 || columns[0] != "cpu" {
		return Ticks{}
	}
	t := Ticks{}
	for i, column := range columns[1:9] {
		n, err := strconv.ParseUint(column, 10, 64)
		if err != nil {
			return Ticks{}
		}
		t.All += n
		if i == 7 {
			t.Stolen = n
		}
	}
	return t
}

// StolenSince is the share of the time since before that the hypervisor took away, 0 to 1; unknown
// where it cannot be read or no tick has passed.
func (t Ticks) StolenSince(before Ticks) (share float64, known bool) {
	if before.All == 0 || t.All <= before.All || t.Stolen < before.Stolen {
		return 0, false
	}
	return float64(t.Stolen-before.Stolen) / float64(t.All-before.All), true
}
