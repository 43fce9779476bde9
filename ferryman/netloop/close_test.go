package netloop_test

import (
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// descriptors is the number of open ones, 0 where the system does not tell.
func descriptors() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}

func TestClose_LeavesNothingBehind(t *testing.T) {
	// Once before counting: the first use of the network opens things for good.
	for name := range transports(t, netloop.Options{}) {
		useAndClose(t, name)
	}
	for name := range transports(t, netloop.Options{}) {
		t.Run(name, func(t *testing.T) {
			fds, goroutines := descriptors(), runtime.NumGoroutine()
			useAndClose(t, name)
			eventually(t, "the descriptors are closed", func() bool { return descriptors() <= fds })
			if !waitFor(func() bool { return runtime.NumGoroutine() <= goroutines }) {
				var b strings.Builder
				pprof.Lookup("goroutine").WriteTo(&b, 1)
				t.Fatalf("%d goroutines before, %d after:\n%s", goroutines, runtime.NumGoroutine(), &b)
			}
		})
	}
}

func waitFor(ok func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
		if ok() {
			return true
		}
	}
	return false
}

// useAndClose makes use of everything an engine has and closes it in the middle.
func useAndClose(t *testing.T, name string) {
	t.Run("use", func(t *testing.T) {
		e := transports(t, netloop.Options{Loops: 2})[name]
		sink := listen(t)
		var idle, ended atomic.Int32
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			// Not closed, like one in a pool: that is for the engine to do.
			if pooled, err := ex.Dial(addrPort(sink), patience, nil); err == nil {
				c.Guard(pooled)
			}
			event := ex.NewEvent()
			ex.Go(func() {
				defer event.Set()
				c.Write(tooMuch)
			})
			idle.Add(1)
			c.SetReadDeadline(time.Now().Add(time.Hour))
			c.Await()
			event.Wait()
			c.Close()
			ended.Add(1)
		})
		const n = 50
		for range n {
			dial(t, addr)
		}
		eventually(t, "all are served", func() bool { return idle.Load() == n })
		require.NoError(t, e.Close())
		require.EqualValues(t, n, ended.Load(), "Close waits for every coroutine")
	})
}

func TestClose_EndsThousandsOfIdleConnections(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		const n = 3000
		var served, ended atomic.Int32
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			defer ended.Add(1)
			defer c.Close()
			served.Add(1)
			if err := c.Await(); err == nil {
				t.Error("nobody has sent anything")
			}
		})
		for range n {
			dial(t, addr)
		}
		eventually(t, "all are served", func() bool { return served.Load() == n })
		closed := make(chan error, 1)
		go func() { closed <- e.Close() }()
		require.NoError(t, receive(t, closed, "Close"))
		require.EqualValues(t, n, ended.Load())
	})
}

func TestClose_WhileConnectionsComeAndGo(t *testing.T) {
	for range 5 {
		forEachTransport(t, func(t *testing.T, e netloop.Engine) {
			addr := serve(t, e, echo)
			var wg sync.WaitGroup
			var trips atomic.Int32
			for range 4 {
				wg.Go(func() {
					// The first to be refused is the last: the port is anybody's then, also of other tests.
					for c := tryDial(addr); c != nil; c = tryDial(addr) {
						c.Write([]byte("x"))
						if n, _ := c.Read(make([]byte, 1)); n == 1 {
							trips.Add(1)
						}
						c.Close()
					}
				})
			}
			eventually(t, "some round trips", func() bool { return trips.Load() > 100 })
			require.NoError(t, e.Close())
			wg.Wait()
		})
	}
}
