package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectTick is the time between two looks at the heap, and collectSoon the same where there was
	// something to collect: ten seconds after a flood its memory is the system's again.
	collectTick = 2 * time.Second
	collectSoon = time.Second
	// collectGrowth is by how many bytes the heap must have grown to be worth a collection.
	collectGrowth = 1 << 20
	// collectFree is how many bytes may be free and not the system's again: more than steady load leaves.
	collectFree = 16 << 20
	// collectLeft is how many goroutines must have ended, and these half of all, for what they held to be worth
	// a collection: the last one may have found it in use.
	collectLeft = 100
	// collectTwice is how many collections a pool needs to let go of what nobody uses (sync.Pool).
	collectTwice = 2
)

// collector has the garbage collector run where it would not by itself for minutes: requests in steady
// state allocate nothing, so what a burst of connections has left in pools would stay.
type collector struct {
	cycles  uint64 // collections so far
	settled uint64 // bytes that objects took after the last one of ours, or whenever they were fewer
	most    uint64 // goroutines since the last one of ours
	due     int    // collections to come
}

// look takes the bytes that objects take, those that are free but held, and the numbers of collections and
// of goroutines. It reports whether a collection should run.
func (c *collector) look(objects, free, cycles, goroutines uint64) bool {
	busy := cycles != c.cycles // the runtime does it
	c.cycles, c.settled, c.most = cycles, min(c.settled, objects), max(c.most, goroutines)
	grown := objects > c.settled+max(c.settled/8, collectGrowth)
	left := c.most-goroutines > max(c.most/2, collectLeft)
	if c.due == 0 && (grown && !busy || left || free > collectFree) {
		c.due = collectTwice
	}
	if c.due == 0 {
		return false
	}
	if c.due--; c.due == 0 {
		c.settled, c.most = objects, goroutines
	}
	c.cycles++
	return true
}

// collect looks at the heap until ctx ends.
func collect(ctx context.Context) {
	t := time.NewTimer(collectTick)
	defer t.Stop()
	heap := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/sched/goroutines:goroutines"},
	}
	var c collector
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		metrics.Read(heap)
		next := collectTick
		switch {
		case !c.look(heap[0].Value.Uint64(), heap[1].Value.Uint64(), heap[2].Value.Uint64(), heap[3].Value.Uint64()):
		case c.due > 0:
			runtime.GC()
			next = collectSoon
		default:
			debug.FreeOSMemory() // the same, and what is free now is the system's
		}
		t.Reset(next)
	}
}
