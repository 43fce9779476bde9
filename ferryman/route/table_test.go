package route_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/route"
)

// build makes a table in which each route's value tells its prefix.
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

// rig is the routes of the conformance cases.
func rig(t testing.TB) *route.Table[string] {
	return build(t, "/", "/api", "/api/v1", "/ws", "/strip", "/down", "/black")
}

// Conformance case 191.
func TestTable_LongestPrefixOnASegmentBoundaryWins(t *testing.T) {
	for _, prefixes := range [][]string{
		{"/", "/api", "/api/v1", "/img/small"},
		{"/img/small", "/api/v1", "/api", "/"},
		{"/api", "/img/small", "/", "/api/v1"},
	} {
		table := build(t, prefixes...)
		for path, want := range map[string]string{
			"/": "/", "/x": "/", "/api": "/api", "/api/": "/api", "/api/x": "/api", "/api/x/v1": "/api",
			"/apix": "/", "/ap": "/", "/api-x": "/", "/api.x": "/", "/api;p": "/", "/API": "/", "/x/api": "/",
			"/api/v1": "/api/v1", "/api/v1/": "/api/v1", "/api/v1/x/y": "/api/v1", "/api/v10": "/api", "/api/v": "/api",
			"/img": "/", "/img/": "/", "/img/small": "/img/small", "/img/smaller": "/", "/img/small/a": "/img/small",
			"/img/smal/l": "/", "/img/small.": "/",
		} {
			prefix, v, ok := table.Lookup([]byte(path))
			require.True(t, ok, path)
			require.Equal(t, want, prefix, path)
			require.Equal(t, "to "+want, v, path)
		}
	}
}

// Conformance case 192.
func TestTable_TrailingSlashOfAPrefixIsTheSamePrefix(t *testing.T) {
	table := build(t, "/api/", "/a/b/")
	for path, want := range map[string]string{"/api": "/api", "/api/": "/api", "/api/x": "/api", "/a/b": "/a/b", "/a/": "", "/apix": ""} {
		prefix, _, ok := table.Lookup([]byte(path))
		require.Equal(t, want != "", ok, path)
		require.Equal(t, want, prefix, path)
	}
	_, err := route.Build([]route.Entry[int]{{Prefix: "/api"}, {Prefix: "/b"}, {Prefix: "/api/"}})
	require.EqualError(t, err, `prefix "/api" is there twice`)
}

// Conformance case 202.
func TestTable_WithoutARootRouteMayMatchNothing(t *testing.T) {
	table := build(t, "/api/v1")
	for _, path := range []string{"/", "/api", "/api/", "/api/v", "/x", "*", "", "api/v1", "api/v1/x"} {
		prefix, v, ok := table.Lookup([]byte(path))
		require.False(t, ok, path)
		require.Empty(t, prefix, path)
		require.Empty(t, v, path)
	}
}

func TestTable_AsteriskBelongsToTheRootRoute(t *testing.T) {
	prefix, _, ok, err := rig(t).Resolve([]byte("*"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "/", prefix)

	_, _, ok, err = build(t, "/api").Resolve([]byte("*"))
	require.NoError(t, err)
	require.False(t, ok)
}

func TestBuild_EmptyTableMatchesNothing(t *testing.T) {
	table := build(t)
	for _, path := range []string{"/", "/a", "*", ""} {
		_, _, ok := table.Lookup([]byte(path))
		require.False(t, ok, path)
	}
}

func TestBuild_NamesEveryPrefixThatIsWrong(t *testing.T) {
	tests := []struct{ prefix, want string }{
		{"", `prefix "": path does not begin with a slash`},
		{"api", `prefix "api": path does not begin with a slash`},
		{"*", `prefix "*": path does not begin with a slash`},
		{"/a/../b", `prefix "/a/../b": path has a dot segment`},
		{"/a/.", `prefix "/a/.": path has a dot segment`},
		{"/a/%2e%2E/b", `prefix "/a/%2e%2E/b": path has a dot segment`},
		{"/a%2", `prefix "/a%2": path has a malformed escape`},
		{"/a%00", `prefix "/a%00": path has an encoded NUL`},
		{`/a\b`, `prefix "/a\\b": path has a backslash`},
		{"/a#b", `prefix "/a#b": path has a fragment`},
		{"//a", `prefix "//a": not in normal form: write "/a"`},
		{"/a//", `prefix "/a//": not in normal form: write "/a/"`},
		{"//", `prefix "//": not in normal form: write "/"`},
		{"/%61", `prefix "/%61": not in normal form: write "/a"`},
		{"/a%2fb", `prefix "/a%2fb": not in normal form: write "/a%2Fb"`},
		{"/a%2Fb", ""},
		{"/a;b/c=d", ""},
		{"/.a/..b/...", ""},
	}
	var entries []route.Entry[int]
	var all []string
	for _, test := range tests {
		_, err := route.Build([]route.Entry[int]{{Prefix: test.prefix}})
		if test.want == "" {
			require.NoError(t, err, test.prefix)
			continue
		}
		require.EqualError(t, err, test.want)
		entries, all = append(entries, route.Entry[int]{Prefix: test.prefix}), append(all, test.want)
	}
	_, err := route.Build(entries)
	require.EqualError(t, err, strings.Join(all, "\n"))
}

// linear is the reference: longest prefix by looking at each.
func linear(prefixes []string, path string) (best string, ok bool) {
	for _, p := range prefixes {
		rest, found := strings.CutPrefix(path, strings.TrimSuffix(p, "/"))
		if found && (rest == "" || rest[0] == '/') && path[0] == '/' && len(p) > len(best) {
			best, ok = p, true
		}
	}
	return best, ok
}

func TestTable_ManyRoutesAgreeWithALinearScan(t *testing.T) {
	prefixes := []string{"/"}
	for i := range 3000 {
		prefixes = append(prefixes, fmt.Sprintf("/t%d/s%d", i%13, i))
		if i%3 == 0 {
			prefixes = append(prefixes, fmt.Sprintf("/t%d/s%d/v%d", i%13, i, i%5))
		}
	}
	table := build(t, prefixes...)
	for i := range 3000 {
		for _, path := range []string{
			fmt.Sprintf("/t%d/s%d/v%d/x", i%13, i, i%5), fmt.Sprintf("/t%d/s%d/v%d", i%13, i, i%7),
			fmt.Sprintf("/t%d/s%d", i%11, i), fmt.Sprintf("/t%d", i%13),
		} {
			want, _ := linear(prefixes, path)
			got, _, _ := table.Lookup([]byte(path))
			require.Equal(t, want, got, path)
		}
	}
}

func TestTable_DeepNestingFindsEachDepth(t *testing.T) {
	var prefixes []string
	for i := 1; i <= 200; i += 3 {
		prefixes = append(prefixes, strings.Repeat("/a", i), strings.Repeat("/a", i)+"/b")
	}
	table := build(t, prefixes...)
	for i := range 250 {
		for _, path := range []string{strings.Repeat("/a", i) + "/", strings.Repeat("/a", i) + "/b/c", strings.Repeat("/a", i) + "/c"} {
			want, _ := linear(prefixes, path)
			got, _, _ := table.Lookup([]byte(path))
			require.Equal(t, want, got, path)
		}
	}
}
