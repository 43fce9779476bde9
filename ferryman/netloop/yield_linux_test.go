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

// Where every processor has an active loop that never parks, others run each millisecond: long before
// the scheduler would see to it, which is after ten. It is the time of the processor that counts, so that what
// the machine does beside is none of it.
func TestYield_ALoopThatNeverParksLetsOthersRun(t *testing.T) {
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
	var gaps []time.Duration
	for len(gaps) < 101 {
		before, begun := messages.Load(), processor(t)
		runtime.Gosched()
		if messages.Load() > before { // else the loop was parked
			gaps = append(gaps, processor(t)-begun)
		}
	}
	clients.Kill()
	slices.Sort(gaps)
	t.Logf("a run of the loop: nine of ten %v, longest %v", gaps[len(gaps)*9/10], gaps[len(gaps)-1])
	require.Less(t, gaps[len(gaps)*9/10], 4*time.Millisecond)
}

// processor is the processor time that this process has used.
func processor(t *testing.T) time.Duration {
	var at unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at))
	return time.Duration(at.Nano())
}
