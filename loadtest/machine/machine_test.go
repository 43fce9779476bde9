package machine

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStolenSince_IsTheShareOfAllTicks(t *testing.T) {
	before := parseStat("cpu  100 0 100 700 50 0 50 0 30 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	require.Equal(t, Ticks{All: 1000}, before)
	after := parseStat("cpu  150 0 150 1350 50 0 70 30 60 0\n")
	share, known := after.StolenSince(before)
	require.True(t, known)
	require.InDelta(t, 30.0/800, share, 1e-9)
}

func TestStolenSince_IsUnknownWithoutAReading(t *testing.T) {
	for _, text := range []string{"", "cpu 1 2", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8"} {
		require.Zero(t, parseStat(text))
	}
	_, known := Ticks{All: 10}.StolenSince(Ticks{})
	require.False(t, known)
	_, known = Ticks{All: 10}.StolenSince(Ticks{All: 10})
	require.False(t, known)
}

func TestDescribe_KnowsTheMachine(t *testing.T) {
	e := Describe()
	require.Equal(t, runtime.Version(), e.Go)
	require.Positive(t, e.Processors)
	if runtime.GOOS == "linux" {
		require.NotEmpty(t, e.Kernel)
		require.Positive(t, e.MemoryMiB)
		require.Positive(t, Clock().All)
	}
}

func TestProcessTime_GrowsWithWork(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, thread := ProcessTime(), ThreadTime()
	deadline := time.Now().Add(10 * time.Second)
	for ProcessTime()-process < 20*time.Millisecond {
		require.True(t, time.Now().Before(deadline), "no processor time was counted")
	}
	if runtime.GOOS == "linux" {
		require.Positive(t, ThreadTime()-thread)
	}
}
