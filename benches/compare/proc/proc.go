// Package proc reads what processes cost from Linux's /proc: processor time and memory of a process
// with all its children, and system calls through whatever tracer the machine has.
//
//	pids := proc.Tree(master)
//	before, _ := proc.CPU(pids)
//	...
//	after, _ := proc.CPU(pids)
//	resident, _ := proc.PSS(pids)
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc/stat. It is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// parseParent finds the parent in the line of /proc/PID/stat. The name in it may hold spaces and parentheses.
func parseParent(line string) (int, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:]) // from the third field, state, on
	if len(fields) < 2 {
		return 0, fmt.Errorf("no parent in %q", line)
	}
	return strconv.Atoi(fields[1])
}

func parent(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseParent(string(b))
}

// Tree is root and all its descendants that are alive. It is nil if root is gone.
func Tree(root int) []int {
	if _, err := parent(root); err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{root}
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := parent(pid); err == nil { // or else it has ended meanwhile
			children[p] = append(children[p], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// CPU is the processor time that the processes have used so far. One that is gone is an error: its
// time would be missing.
func CPU(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		used, err := clock(pid)
		if err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		sum += used
	}
	return sum, nil
}

// PSS is the resident memory of the processes in KiB, where a page that n processes share counts
// one n-th for each.
func PSS(pids []int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		n, err := parseRollup(string(b))
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		sum += n
	}
	return sum, nil
}

// parseRollup finds the line "Pss:  1234 kB".
func parseRollup(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" && f[2] == "kB" {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("no Pss in smaps_rollup")
}

// Busy is the processor time that everybody on the machine has used so far, summed over processors,
// stolen time left out. It is 0 where there is no /proc/stat.
func Busy() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return parseBusy(string(b))
}

// parseBusy reads the line "cpu user nice system idle iowait irq softirq steal guest guest_nice". The
// last two are part of the first two.
func parseBusy(text string) time.Duration {
	line, _, _ := strings.Cut(text, "\n")
	columns := strings.Fields(line)
	if len(columns) < 8 || columns[0] != "cpu" {
		return 0
	}
	ticks := uint64(0)
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseUint(columns[i], 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
