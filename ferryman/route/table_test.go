package route_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/route"
)

func build(t testing.TB, prefixes ...string) *route.Table[string] {
	t.Helper()
	var entries []route.Entry[string]
	for _, p := range prefixes {
		entries = append(entries, route.Entry[string]{Prefix: p, Value: "to " + p})
	}
	table, err := route.Build(entries)
	require.NoError(t, err)
	return table
}

func TestTable_LongestPrefixOnASegmentBoundaryWins(t *testing.T) {
	for _, prefixes := range [][]string{
		{"/", "/api", "/api/v1", "/img/small"},
		{"/img/small", "/api/v1", "/api", "/"},
	} {
		table := build(t, prefixes...)
		for path, want := range map[string]string{
			"/": "/", "/x": "/", "/api": "/api", "/api/": "/api", "/api/x": "/api",
			"/apix": "/", "/ap": "/", "/api-x": "/", "/api.x": "/", "/api;p": "/", "/API": "/",
			"/api/v1": "/api/v1", "/api/v1/": "/api/v1", "/api/v1/x/y": "/api/v1", "/api/v10": "/api",
			"/img": "/", "/img/": "/", "/img/small": "/img/small", "/img/smaller": "/", "*": "/",
		} {
			prefix, v, ok := table.Lookup([]byte(path))
			require.True(t, ok, path)
			require.Equal(t, want, prefix, path)
			require.Equal(t, "to "+want, v, path)
		}
	}
}
