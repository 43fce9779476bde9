package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const mib = 1 << 20

func TestCollector_RunsTwiceAfterTheHeapHasGrown(t *testing.T) {
	c := collector{cycles: 3, settled: 20 * mib}
	require.False(t, c.look(21*mib, 0, 3, 10), "not worth it")
	require.True(t, c.look(40*mib, 0, 3, 10))
	require.True(t, c.look(30*mib, 0, 4, 10), "pools let go the second time")
	require.False(t, c.look(22*mib, 0, 5, 10))
	require.False(t, c.look(24*mib, 0, 5, 10), "not worth it")
	require.True(t, c.look(30*mib, 0, 5, 10))
}

// What a burst leaves in pools is alive to the runtime, for which nothing is to be gained.
func TestCollector_RunsForWhatIsAliveAndNotInUse(t *testing.T) {
	c := collector{cycles: 3, settled: 3 * mib}
	require.False(t, c.look(150*mib, 0, 9, 10), "the runtime has just done it")
	require.True(t, c.look(150*mib, 0, 9, 10))
	require.True(t, c.look(150*mib, 0, 10, 10))
	require.False(t, c.look(140*mib, 0, 11, 10), "it is in use")
	require.False(t, c.look(141*mib, 0, 11, 10))
	require.False(t, c.look(4*mib, 0, 12, 10))
	require.True(t, c.look(9*mib, 0, 12, 10), "from the least that was needed")
}

func TestCollector_LeavesItToTheRuntimeWhereThatCollects(t *testing.T) {
	c := collector{}
	for cycles := uint64(1); cycles < 100; cycles++ {
		require.False(t, c.look(8*mib, 4*mib, cycles, 10))
	}
	require.True(t, c.look(8*mib, 4*mib, 99, 10))
	require.True(t, c.look(8*mib, 4*mib, 102, 10), "what was begun is ended")
	require.False(t, c.look(8*mib, 4*mib, 105, 10))
}

func TestCollector_GivesBackWhatABurstHasLeft(t *testing.T) {
	c := collector{cycles: 3}
	require.True(t, c.look(8*mib, 100*mib, 9, 10), "also where the runtime collects")
	require.True(t, c.look(8*mib, 0, 11, 10))
	require.False(t, c.look(8*mib, 10*mib, 12, 10))
}

// What a crowd held was in use when the last collection ran, and nothing has grown since.
func TestCollector_RunsTwiceAfterACrowdHasLeft(t *testing.T) {
	c := collector{cycles: 9, settled: 90 * mib}
	require.False(t, c.look(90*mib, 0, 9, 5000))
	require.False(t, c.look(90*mib, 0, 9, 4000), "a few have left")
	require.True(t, c.look(90*mib, 0, 9, 20))
	require.True(t, c.look(10*mib, 0, 10, 20))
	require.False(t, c.look(5*mib, 0, 11, 20))
	require.False(t, c.look(5*mib, 0, 11, 10), "nor for a handful")
}
