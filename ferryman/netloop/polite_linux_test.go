package netloop_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Where every processor has a loop at work that never parks, others get their turn each millisecond: long before
// the scheduler would see to it, which is after ten. It is the time of the processor that counts, so that what
// the machine does beside is none of it.
func TestPoliteness_ALoopThatNeverParksGivesTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	var messages atomic.Int64
	addr := serve(t, e, func(_ netloop.Executor, c netloop.Conn) {
		defer c.Close()
		b := make([]byte, 64)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			messages.Add(1)
			c.Write(b[:n])
		}
	})
	_, clients := startChild(t, fmt.Sprintf("load %s 64 %d", addr, 1<<30))
	eventually(t, "the load is on", func() bool { return messages.Load() > 1000 })
	var turns []time.Duration
	for len(turns) < 101 {
		before, begun := messages.Load(), processor(t)
		runtime.Gosched()
		if messages.Load() > before { // else the loop was parked
			turns = append(turns, processor(t)-begun)
		}
	}
	clients.Kill()
	slices.Sort(turns)
	t.Logf("a turn of the loop: nine of ten %v, longest %v", turns[len(turns)*9/10], turns[len(turns)-1])
	require.Less(t, turns[len(turns)*9/10], 4*time.Millisecond)
}

// processor is the processor time that this process has used.
func processor(t *testing.T) time.Duration {
	var at unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at))
	return time.Duration(at.Nano())
}
