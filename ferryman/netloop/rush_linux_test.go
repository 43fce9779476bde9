package netloop_test

import (
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// ask sends a byte now and then and awaits its echo, which keeps a loop expecting the next one.
func ask(c net.Conn, stop <-chan struct{}) {
	b := make([]byte, 1)
	for {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Microsecond):
		}
		c.Write(b)
		c.Read(b)
	}
}

// A loop that expects an event soon waits in the kernel and holds its processor. Neither a collection, which
// stops the world, nor a timer of somebody else may have to wait for it.
func TestRush_HoldsUpNeitherCollectionsNorTimers(t *testing.T) {
	e := engines(t, netloop.Options{Loops: runtime.GOMAXPROCS(0)})["loops"]
	addr := serve(t, e, echo)
	stop := make(chan struct{})
	defer close(stop)
	for range 2 * runtime.GOMAXPROCS(0) {
		go ask(dial(t, addr), stop)
	}
	for name, f := range map[string]func(){"a collection": runtime.GC, "a timer": func() { <-time.After(100 * time.Microsecond) }} {
		took := make([]time.Duration, 101)
		for i := range took {
			begun := time.Now()
			f()
			took[i] = time.Since(begun)
		}
		slices.Sort(took)
		t.Logf("%s: median %v, worst %v", name, took[len(took)/2], took[len(took)-1])
		require.Less(t, took[len(took)/2], 20*time.Millisecond, name)
	}
}
