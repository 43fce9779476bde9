package netloop

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A loop that expects an event soon waits in the kernel and holds its processor. Neither a collection, which
// stops the world, nor a timer of somebody else may have to wait for it: the scheduler's signal ends the wait,
// be it as long as here, where all processors are held and no event ever comes.
func TestShortWait_DelaysNeitherCollectionsNorTimers(t *testing.T) {
	const never, soon = 30 * time.Second, 15 * time.Second // a machine too busy stays far below
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(epfd)
	var waits sync.WaitGroup
	var over atomic.Bool
	for range runtime.GOMAXPROCS(0) {
		waits.Go(func() {
			for events := make([]unix.EpollEvent, 1); !over.Load(); {
				epollWait(epfd, events, uintptr(never/time.Millisecond))
			}
		})
	}
	for name, f := range map[string]func(){"a collection": runtime.GC, "a timer": func() { <-time.After(100 * time.Microsecond) }} {
		for range 3 {
			begun := time.Now()
			f()
			require.Less(t, time.Since(begun), soon, name)
		}
	}
	over.Store(true)
	runtime.GC() // its signals end the last waits
	waits.Wait()
}
