//go:build linux && !race

package engine

import (
	"net"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/Bunty9/ferryman/loadtest/machine"
	"github.com/stretchr/testify/require"
)

// The server allocates nothing either: it looks for no request, it answers whatever comes.
func allocationFree(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerAll(c)
		}
	}()
	return "http://" + l.Addr().String() + "/echo"
}

func answerAll(c net.Conn) {
	defer c.Close()
	buffer, ok := make([]byte, 4096), []byte(okAnswer)
	for {
		if _, err := c.Read(buffer); err != nil {
			return
		}
		if _, err := c.Write(ok); err != nil {
			return
		}
	}
}

func allocations(t *testing.T, p Plan) uint64 {
	t.Helper()
	r, err := New(p)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Equal(t, report.Planned, report.Total.Classes["ok"])
	return after.Mallocs - before.Mallocs
}

func TestLoops_AllocateNothingPerRequest(t *testing.T) {
	p := plan(allocationFree(t))
	p.Executor = Loops
	few := allocations(t, p)
	p.Rate *= 20
	many := allocations(t, p)
	extra := float64(many) - float64(few)
	require.Less(t, extra/1900, 0.05, "%v allocations for 100 requests, %v for 2000", few, many)

	// The gate must be able to fail: a connection per request does allocate.
	p.NoKeepAlive = true
	require.Greater(t, float64(allocations(t, p))-float64(few), 1900.0)
}

// reference is what a loop cannot do without: a send and a receive per request, over the same kind
// of connection, against the same server, with nothing around them and no sleep between them.
func reference(t *testing.T, url string, requests int) time.Duration {
	t.Helper()
	target, err := (&Plan{}).newTarget(t.Context(), 0, plan(url).Targets[0])
	require.NoError(t, err)
	c, err := net.Dial("tcp", target.addr.String())
	require.NoError(t, err)
	defer c.Close()
	file, err := c.(*net.TCPConn).File() // a blocking descriptor of its own
	require.NoError(t, err)
	defer file.Close()
	buffer, kernel := make([]byte, 4096), receiver{}
	// No collection may begin meanwhile: it would wait for this thread, which the scheduler cannot interrupt, and
	// this one for the server, which a collection stops.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := machine.ThreadTime()
	for range requests {
		_, errno := send(int(file.Fd()), target.bytes)
		require.Zero(t, errno)
		_, _, errno = kernel.receive(int(file.Fd()), buffer)
		require.Zero(t, errno)
	}
	return (machine.ThreadTime() - before) / time.Duration(requests)
}

// On the machines that this was written on, the reference takes about as long as a loop takes for a
// request at 20,000 requests/s: it sleeps once a request in the kernel, the loop once for several.
func TestLoops_CostAtMostTwiceWhatTheKernelDoes(t *testing.T) {
	url := allocationFree(t)
	p := plan(url)
	p.Executor, p.Rate, p.Connections, p.Loops, p.Duration = Loops, 20_000, 100, 1, time.Second
	best := 1e9
	for range 3 { // a busy machine spoils caches; one quiet attempt is enough
		floor := reference(t, url, 10_000)
		report := run(t, p)
		require.EqualValues(t, 20_000, report.Total.Requests)
		cost := report.Cost.LoopPerReqUS / (float64(floor) / 1e3)
		t.Logf("reference %v, loop %.1f us, process %.1f us a request: ratio %.2f", floor, report.Cost.LoopPerReqUS, report.Cost.CPUPerReqUS, cost)
		best = min(best, cost)
	}
	require.Less(t, best, 2.0)
}
