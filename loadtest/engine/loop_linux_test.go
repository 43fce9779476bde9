package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGrainFor_IsFourRequestsButNotLong(t *testing.T) {
	require.Equal(t, 200*time.Microsecond, grainFor(1000))
	require.Equal(t, 200*time.Microsecond, grainFor(20_000))
	require.Equal(t, 50*time.Microsecond, grainFor(80_000))
	require.Equal(t, maxGrain, grainFor(0), "a closed loop has no schedule to wait for")
}

// A loop's counters decide how it waits. Whatever happens to requests, they end at zero.
func TestLoop_ItsCountersEndAtZero(t *testing.T) {
	scripts := map[string]answer{
		"ok": respond(okAnswer), "closing": closing(okAnswer), "reset": reset, "truncated": closing("HTTP/1.1 2"),
		"never": never, "malformed": respond("nonsense\r\n\r\n"),
	}
	for name, do := range scripts {
		for _, keepAlive := range []bool{true, false} {
			s := serve(t, do)
			p := plan(s.url())
			p.Executor, p.Loops, p.Timeout, p.NoKeepAlive = Loops, 1, 100*time.Millisecond, !keepAlive
			p.Targets[0].Body = make([]byte, 100_000)
			r, err := New(p)
			require.NoError(t, err)
			l, err := newLoop(r, 0)
			require.NoError(t, err)
			if keepAlive {
				l.connectAll(t.Context(), time.Now().Add(connectLimit))
			}
			r.start = time.Now()
			close(r.begun)
			l.run()
			l.close()
			require.Zero(t, l.out, name)
			require.Zero(t, l.unwritten, name)
			require.Zero(t, l.waiting, name)
			require.Zero(t, r.open.Load(), name)
			for _, ln := range l.mine {
				require.Equal(t, ln.Connections, ln.idle.n+len(ln.down), name)
			}
		}
	}
}
