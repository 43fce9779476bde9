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
	collectTick = 5 * time.Second
	// collectGrowth is by how many bytes the heap must have grown to be worth a collection.
	collectGrowth = 256 << 10
	// collectTwice is how many collections a pool needs to let go of what nobody uses (sync.Pool).
	collectTwice = 2
)

// collector has the garbage collector run where it would not by itself for minutes: requests in steady
// state allocate nothing, so what a burst of connections has left in pools would stay.
type collector struct {
	cycles uint64 // collections so far
	due    int    // collections to come
}

// look takes the bytes that objects take, those that the last collection found alive, and the number of
// collections. It reports whether one should run.
func (c *collector) look(objects, live, cycles uint64) bool {
	busy := cycles != c.cycles
	c.cycles = cycles
	switch {
	case busy: // the runtime does it
		c.due = 0
	case objects > live+max(live/8, collectGrowth):
		c.due = collectTwice
	}
	if c.due == 0 {
		return false
	}
	c.due--
	c.cycles++
	return true
}

// collect looks at the heap until ctx ends.
func collect(ctx context.Context) {
	t := time.NewTicker(collectTick)
	defer t.Stop()
	heap := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
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
		case !c.look(heap[0].Value.Uint64(), heap[1].Value.Uint64(), heap[2].Value.Uint64()):
		case c.due > 0:
			runtime.GC()
		default:
			debug.FreeOSMemory() // the same, and what is free now is the system's
		}
	}
}
