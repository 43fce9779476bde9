package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectTick is the time between two looks at the heap.
	collectTick = 2 * time.Second
	// collectGrowth is by how many bytes the heap must have grown to be worth a collection.
	collectGrowth = 256 << 10
	// collectTwice is how many collections a pool needs to let go of what nobody uses (sync.Pool).
	collectTwice = 2
	// collectLeft is how many goroutines must have ended, and these half of all, for what they held to be worth
	// one: the last collection may have found it in use.
	collectLeft = 100
)

// collector has the garbage collector run where it would not by itself for minutes: requests in steady
// state allocate nothing, so what a burst of connections has left in pools would stay.
type collector struct {
	cycles uint64 // collections so far
	stale  bool   // the runtime has run one since our last: what was in use then may be garbage by now
	most   uint64 // goroutines since our last one
	due    int    // collections to come
}

// look takes the bytes that objects take, those that the last collection found alive, the number of
// collections and that of goroutines. It reports whether one should run.
func (c *collector) look(objects, live, cycles, goroutines uint64) bool {
	busy := cycles != c.cycles
	c.cycles, c.most = cycles, max(c.most, goroutines)
	switch {
	case busy: // the runtime does it
		c.due, c.stale = 0, true
	case c.stale, objects > live+max(live/8, collectGrowth), c.most-goroutines > max(c.most/2, collectLeft):
		c.due = collectTwice
	}
	if c.due == 0 {
		return false
	}
	c.due--
	c.cycles++
	c.stale, c.most = false, goroutines
	return true
}

// collect looks at the heap until ctx ends.
func collect(ctx context.Context) {
	t := time.NewTicker(collectTick)
	defer t.Stop()
	heap := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
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
		switch {
		case !c.look(heap[0].Value.Uint64(), heap[1].Value.Uint64(), heap[2].Value.Uint64(), heap[3].Value.Uint64()):
		case c.due > 0:
			runtime.GC()
		default:
			debug.FreeOSMemory() // the same, and what is free now is the system's
		}
	}
}
