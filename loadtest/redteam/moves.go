package redteam

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// moveWatch counts how often sockets of a process go from one epoll set to another. That is what a connection's move
// between event loops looks like from outside.
type moveWatch struct {
	pid   int
	at    map[string]int  // where a socket, by its inode, was seen last
	other map[string]bool // inodes that are no sockets'
	moves int
}

// countMoves counts until ctx ends.
func countMoves(ctx context.Context, pid int) (moves int) {
	w := &moveWatch{pid: pid, at: make(map[string]int), other: make(map[string]bool)}
	for pause(ctx, 25*time.Millisecond) {
		w.look()
	}
	return w.moves
}

func (w *moveWatch) look() {
	sets := w.sets()
	for _, set := range sets[min(1, len(sets)):] { // the first one is the Go runtime's own
		info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", w.pid, set))
		for line := range strings.Lines(string(info)) {
			// tfd:        7 events: 2019 data: ... pos:0 ino:1acfb0 sdev:8
			if fields := strings.Fields(line); len(fields) > 7 && fields[0] == "tfd:" {
				w.seen(set, fields[1], fields[7])
			}
		}
	}
}

// seen notes that a descriptor is in a set.
func (w *moveWatch) seen(set int, fd, inode string) {
	before, known := w.at[inode]
	switch {
	case w.other[inode]:
		return
	case !known:
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", w.pid, fd))
		if err != nil {
			return
		}
		if !strings.HasPrefix(to, "socket:") {
			w.other[inode] = true
			return
		}
	case before != set:
		w.moves++
	}
	w.at[inode] = set
}

// sets are the descriptors of the process's epoll sets, in order.
func (w *moveWatch) sets() (sets []int) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.pid))
	for _, name := range names {
		if to, _ := os.Readlink(name); to == "anon_inode:[eventpoll]" {
			fd, _ := strconv.Atoi(filepath.Base(name))
			sets = append(sets, fd)
		}
	}
	slices.Sort(sets)
	return sets
}
