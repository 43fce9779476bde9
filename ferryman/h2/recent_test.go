package h2

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecent_KnowsTheLastOnes(t *testing.T) {
	var r Recent
	require.False(t, r.Has(1))
	for id := uint32(1); id <= 2*maxRecent; id++ {
		r.Add(id)
		r.Add(id)
		require.True(t, r.Has(id))
		require.Equal(t, id > maxRecent, !r.Has(1), "the oldest gives way when there are %d", id)
	}
	require.False(t, r.Has(maxRecent))
	require.True(t, r.Has(maxRecent+1))
	require.Len(t, r.ids, maxRecent)
	r.Ended(maxRecent + 1)
	r.Ended(7)
	require.False(t, r.Has(maxRecent+1))
	require.True(t, r.Has(maxRecent+2))
}
