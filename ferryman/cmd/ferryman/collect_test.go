package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const mib = 1 << 20

func TestCollector_RunsTwiceAfterTheHeapHasGrown(t *testing.T) {
	c := collector{cycles: 3, settled: 20 * mib}
	require.False(t, c.look(21*mib, 0, 3), "not worth it")
	require.True(t, c.look(40*mib, 0, 3))
	require.True(t, c.look(30*mib, 0, 4), "pools let go the second time")
	require.False(t, c.look(22*mib, 0, 5))
	require.False(t, c.look(24*mib, 0, 5), "not worth it")
	require.True(t, c.look(30*mib, 0, 5))
}

// What a burst leaves in pools is alive to the runtime, for which nothing is to be gained.
func TestCollector_RunsForWhatIsAliveAndNotInUse(t *testing.T) {
	c := collector{cycles: 3, settled: 3 * mib}
	require.False(t, c.look(150*mib, 0, 9), "the runtime has just done it")
	require.True(t, c.look(150*mib, 0, 9))
	require.True(t, c.look(150*mib, 0, 10))
	require.False(t, c.look(140*mib, 0, 11), "it is in use")
	require.False(t, c.look(141*mib, 0, 11))
	require.False(t, c.look(4*mib, 0, 12))
	require.True(t, c.look(9*mib, 0, 12), "from the least that was needed")
}

func TestCollector_LeavesItToTheRuntimeWhereThatCollects(t *testing.T) {
	c := collector{}
	for cycles := uint64(1); cycles < 100; cycles++ {
		require.False(t, c.look(8*mib, 4*mib, cycles))
	}
	require.True(t, c.look(8*mib, 4*mib, 99))
	require.True(t, c.look(8*mib, 4*mib, 102), "what was begun is ended")
	require.False(t, c.look(8*mib, 4*mib, 105))
}

func TestCollector_GivesBackWhatABurstHasLeft(t *testing.T) {
	c := collector{cycles: 3}
	require.True(t, c.look(8*mib, 100*mib, 9), "also where the runtime collects")
	require.True(t, c.look(8*mib, 0, 11))
	require.False(t, c.look(8*mib, 10*mib, 12))
}
