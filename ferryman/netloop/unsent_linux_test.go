package netloop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// A reader that reads nothing takes a bounded amount of the kernel's memory: what its own window holds and a
// little more, not the megabytes that a send buffer may grow to.
func TestWrite_ToAReaderThatStoppedTakesInLittle(t *testing.T) {
	const window = 64 << 10
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		taken := make(chan int)
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			defer c.Close()
			piece, sum := make([]byte, 32<<10), 0
			for {
				c.SetWriteDeadline(ex.Now().Add(300 * time.Millisecond))
				n, err := c.Write(piece)
				if sum += n; err != nil {
					taken <- sum
					return
				}
			}
		})
		dial(t, addr).Close() // from here on the listener is served, and connections inherit what it was told
		receive(t, taken, "the end of the first connection")
		c := dial(t, addr)
		require.NoError(t, c.SetReadBuffer(window/2)) // the kernel doubles it
		n := receive(t, taken, "a write that stops")
		require.Greater(t, n, window/4)
		require.Less(t, n, window+512<<10)
	})
}
