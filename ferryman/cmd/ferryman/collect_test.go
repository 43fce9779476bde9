package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollector_RunsTwiceAfterTheHeapHasGrown(t *testing.T) {
	const mib = 1 << 20
	c := collector{cycles: 3}
	require.False(t, c.look(2*mib, 2*mib, 3, 10), "nothing to gain")
	require.True(t, c.look(4*mib, 2*mib, 3, 10))
	require.True(t, c.look(3*mib, 3*mib, 4, 10), "pools let go the second time")
	require.False(t, c.look(2*mib, 2*mib, 5, 10))
	require.False(t, c.look(2*mib+mib/5, 2*mib, 5, 10), "not worth it")
	require.False(t, c.look(41*mib, 40*mib, 5, 10), "nor is that, of so much")
}

func TestCollector_LeavesItToTheRuntimeWhereThatCollects(t *testing.T) {
	c := collector{}
	for cycles := uint64(1); cycles < 100; cycles++ {
		require.False(t, c.look(8<<20, 4<<20, cycles, 10))
	}
	require.True(t, c.look(8<<20, 4<<20, 99, 10))
	require.False(t, c.look(8<<20, 4<<20, 102, 10))
}

func TestCollector_RunsTwiceBehindTheRuntimeForWhatWasInUseThen(t *testing.T) {
	c := collector{}
	require.False(t, c.look(90<<20, 88<<20, 7, 10), "the runtime has collected")
	require.True(t, c.look(90<<20, 88<<20, 7, 10))
	require.True(t, c.look(30<<20, 30<<20, 8, 10))
	require.False(t, c.look(4<<20, 4<<20, 9, 10))
}

// What a crowd held was in use when the runtime collected last, and nothing has grown since.
func TestCollector_RunsTwiceAfterACrowdHasLeft(t *testing.T) {
	const mib = 1 << 20
	c := collector{cycles: 10}
	require.False(t, c.look(900*mib, 850*mib, 10, 5000))
	require.False(t, c.look(900*mib, 850*mib, 10, 4000), "a few have left")
	require.True(t, c.look(900*mib, 850*mib, 10, 20))
	require.True(t, c.look(10*mib, 10*mib, 11, 20))
	require.False(t, c.look(5*mib, 5*mib, 12, 20))
	require.False(t, c.look(5*mib, 5*mib, 12, 10), "nor for a handful")
}
