package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollector_RunsTwiceAfterTheHeapHasGrown(t *testing.T) {
	const mib = 1 << 20
	c := collector{cycles: 3}
	require.False(t, c.look(2*mib, 2*mib, 3), "nothing to gain")
	require.True(t, c.look(4*mib, 2*mib, 3))
	require.True(t, c.look(3*mib, 3*mib, 4), "pools let go the second time")
	require.False(t, c.look(2*mib, 2*mib, 5))
	require.False(t, c.look(2*mib+mib/5, 2*mib, 5), "not worth it")
	require.False(t, c.look(41*mib, 40*mib, 5), "nor is that, of so much")
}

func TestCollector_LeavesItToTheRuntimeWhereThatCollects(t *testing.T) {
	c := collector{}
	for cycles := uint64(1); cycles < 100; cycles++ {
		require.False(t, c.look(8<<20, 4<<20, cycles))
	}
	require.True(t, c.look(8<<20, 4<<20, 99))
	require.False(t, c.look(8<<20, 4<<20, 102))
}
