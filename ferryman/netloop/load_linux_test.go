package netloop_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// hold opens connections to "ADDRESS N" and keeps them.
func hold(argument string) {
	addr, count, _ := strings.Cut(argument, " ")
	n, _ := strconv.Atoi(count)
	held := make([]net.Conn, n)
	for i := range held {
		var err error
		if held[i], err = net.Dial("tcp", addr); err != nil {
			fmt.Fprintln(os.Stderr, "hold:", err)
			os.Exit(1)
		}
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
}

// idleMemory returns what each of n connections that wait for their first byte takes, and what is
// left of it when they have gone.
func idleMemory(t testing.TB, e netloop.Engine, n int) (each, left float64) {
	var waiting atomic.Int64
	addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
		defer waiting.Add(-1)
		defer c.Close()
		waiting.Add(1)
		c.SetReadDeadline(ex.Now().Add(time.Hour))
		c.Await()
	})
	before := memory()
	out, child := startChild(t, fmt.Sprintf("hold %s %d", addr, n))
	require.True(t, out.Scan())
	eventually(t, "all wait", func() bool { return waiting.Load() == int64(n) })
	each = float64(memory()-before) / float64(n)
	require.NoError(t, child.Kill())
	eventually(t, "all have ended", func() bool { return waiting.Load() == 0 })
	return each, (float64(memory()) - float64(before)) / float64(n)
}

func memory() uint64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse + m.MSpanInuse + m.MCacheInuse
}

func TestCost_AnIdleConnectionIsSmall(t *testing.T) {
	for name, e := range engines(t, netloop.Options{Loops: 2}) {
		if name != "loops" {
			continue
		}
		each, left := idleMemory(t, e, 10_000)
		t.Logf("%s: %.0f bytes, %.0f of them left when they have gone", name, each, left)
		require.Less(t, each, 6.0*1024)
		require.Less(t, left, 1024.0, "the runtime keeps some 500 of a goroutine")
	}
}

func BenchmarkIdleMemory(b *testing.B) {
	for name := range engines(b, netloop.Options{}) {
		b.Run(name, func(b *testing.B) {
			e := engines(b, netloop.Options{Loops: 2})[name]
			each, left := idleMemory(b, e, 5000)
			b.ReportMetric(each, "B/conn")
			b.ReportMetric(left, "B/conn-left")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// load has n clients send a small message each and wait for the answer, a number of times in all:
// "ADDRESS N TIMES".
func load(argument string) {
	var addr string
	var n int
	var times atomic.Int64
	var left int64
	fmt.Sscan(argument, &addr, &n, &left)
	times.Store(left)
	var wg sync.WaitGroup
	for range n {
		c := tryDial(addr)
		wg.Go(func() {
			b := make([]byte, 64)
			for times.Add(-1) >= 0 {
				c.Write(b)
				if _, err := io.ReadFull(c, b); err != nil {
					fmt.Fprintln(os.Stderr, "load:", err)
					os.Exit(1)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("done")
	io.Copy(io.Discard, os.Stdin)
}

// BenchmarkEcho compares the processor time of the engines, clients and the time that others
// take of the machine left out.
func BenchmarkEcho(b *testing.B) {
	for name := range engines(b, netloop.Options{}) {
		b.Run(name, func(b *testing.B) {
			addr := serve(b, engines(b, netloop.Options{})[name], echo)
			b.ReportAllocs()
			before := usage(b)
			out, _ := startChild(b, fmt.Sprintf("load %s 64 %d", addr, b.N))
			require.True(b, out.Scan())
			b.ReportMetric(float64(usage(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// usage is the processor time that this process has used.
func usage(b *testing.B) time.Duration {
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
