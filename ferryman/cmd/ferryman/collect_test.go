package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollector_RunsTwiceAfterTheHeapHasGrown(t *testing.T) {
	const mib = 1 << 20
	c := collector{cycles: 3}
	require.False(t, c.look(2*mib, 2*mib, 0, 3), "nothing to gain")
	require.True(t, c.look(4*mib, 2*mib, 0, 3))
	require.True(t, c.look(3*mib, 3*mib, 0, 4), "pools let go the second time")
	require.False(t, c.look(2*mib, 2*mib, 0, 5))
	require.False(t, c.look(2*mib+mib/5, 2*mib, 0, 5), "not worth it")
	require.False(t, c.look(41*mib, 40*mib, 0, 5), "nor is that, of so much")
}

func TestCollector_LeavesItToTheRuntimeWhereThatCollects(t *testing.T) {
	c := collector{}
	for cycles := uint64(1); cycles < 100; cycles++ {
		require.False(t, c.look(8<<20, 4<<20, 0, cycles))
	}
	require.True(t, c.look(8<<20, 4<<20, 0, 99))
	require.True(t, c.look(8<<20, 4<<20, 0, 102), "what was begun is ended")
	require.False(t, c.look(8<<20, 4<<20, 0, 105))
}

func TestCollector_GivesBackWhatABurstHasLeft(t *testing.T) {
	const mib = 1 << 20
	c := collector{cycles: 3}
	require.True(t, c.look(8*mib, 8*mib, 100*mib, 9), "also where the runtime collects")
	require.True(t, c.look(8*mib, 8*mib, 0, 11))
	require.False(t, c.look(8*mib, 8*mib, 10*mib, 12))
}
