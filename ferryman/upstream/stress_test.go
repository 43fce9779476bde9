package upstream_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Many coroutines borrow, return and drop connections while others prune, count and at last retire. At
// the end every connection that was ever opened is closed, and the counts are zero.
func TestPool_NothingIsLostUnderLoad(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		var opened, ended sync.WaitGroup
		go acceptAll(r.far, &opened)

		const coroutines, rounds = 16, 200
		var handedOutTwice atomic.Int64
		var held sync.Map
		for i := range coroutines {
			ex := r.ex[i%len(r.ex)]
			ended.Add(1)
			ex.Post(func() {
				defer ended.Done()
				random := rand.New(rand.NewPCG(uint64(i), 1))
				for range rounds {
					borrow(r, ex, random, &opened, &held, &handedOutTwice)
				}
			})
		}
		done := make(chan struct{})
		go func() {
			ended.Wait()
			close(done)
		}()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-tick.C:
				r.up.Prune(time.Now().Add(-time.Millisecond))
				inUse, idle := r.up.Connections()
				require.GreaterOrEqual(t, inUse, 0)
				require.GreaterOrEqual(t, idle, 0)
			}
		}
		require.Zero(t, handedOutTwice.Load(), "a connection was in two hands")
		r.up.Retire()
		r.counts(0, 0)
		closed := make(chan struct{})
		go func() {
			opened.Wait()
			close(closed)
		}()
		receive(t, closed, "every connection to be closed")
	})
}

// borrow takes a connection, says something over it and gives it back in one way or another.
func borrow(r *rig, ex netloop.Executor, random *rand.Rand, opened *sync.WaitGroup, held *sync.Map, twice *atomic.Int64) {
	c := r.up.Idle(ex, random.IntN(2) == 0)
	if c == nil {
		opened.Add(1)
		var err error
		if c, err = connect(r.up, ex); err != nil {
			opened.Done()
			return
		}
	}
	if _, loaded := held.LoadOrStore(c, true); loaded {
		twice.Add(1)
	}
	_, err := io.WriteString(c, "x")
	if err == nil {
		err = c.In.Fill()
		c.In.Discard(c.In.Buffered())
	}
	held.Delete(c)
	if err != nil || random.IntN(8) == 0 {
		c.Discard()
		return
	}
	c.Put(ex)
}

// acceptAll echoes, and now and then says something unasked or goes away.
func acceptAll(l net.Listener, opened *sync.WaitGroup) {
	for n := 0; ; n++ {
		far, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer opened.Done()
			defer far.Close()
			b := make([]byte, 1)
			for k := 0; ; k++ {
				if _, err := far.Read(b); err != nil {
					return
				}
				if _, err := far.Write(b); err != nil || n%5 == 0 && k == 7 {
					return
				}
				if n%7 == 0 && k == 5 {
					far.Write(b) // nobody asked
				}
			}
		}()
	}
}
