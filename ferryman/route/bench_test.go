package route_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/route"
)

// wide is a table of n routes, two or three segments each.
func wide(t testing.TB, n int) *route.Table[string] {
	prefixes := []string{"/"}
	for i := 1; i < n; i++ {
		prefix := fmt.Sprintf("/team%d/service%d", i%37, i)
		if i%2 == 0 {
			prefix += "/v1"
		}
		prefixes = append(prefixes, prefix)
	}
	return build(t, prefixes...)
}

// deep is a table whose routes are all on one way down: /a, /a/a, /a/a/a and so on, one in step.
func deep(t testing.TB, segments, step int) *route.Table[string] {
	prefixes := []string{"/"}
	for i := step; i <= segments; i += step {
		prefixes = append(prefixes, strings.Repeat("/a", i))
	}
	return build(t, prefixes...)
}

func TestTable_OrdinaryLookupsDoNotAllocate(t *testing.T) {
	table := wide(t, 1000)
	for _, path := range []string{
		"/", "/none", "/team5/service5/x/y?", "/team2/service2/v1/users/42", "*", "///", "/.well-known/x",
		"/a%20b/%7Euser", "/a/../b", "/team5//service5", strings.Repeat("/%41", 100), strings.Repeat("/abcdefg", 2048),
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { table.Lookup([]byte(path)) }), path)
		p := []byte(path)
		require.Zero(t, testing.AllocsPerRun(100, func() { table.Resolve(p); route.Check(p) }), path)
	}
}

// The longest path there is, of what is dear to normalize.
func TestTable_LongPathsThatAreNotPlainAllocateOnce(t *testing.T) {
	table := wide(t, 1000)
	for _, piece := range []string{"/%41", "%20/%20a", "//a/"} {
		path := append([]byte("/"), bytes.Repeat([]byte(piece), 16383/len(piece))...)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { table.Resolve(path) }), 1.0, piece)
	}
}

func BenchmarkTable_Resolve(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		table := wide(b, n)
		for name, path := range map[string][]byte{
			"hit":  fmt.Appendf(nil, "/team%d/service%d/users", (n-1)%37, n-1),
			"miss": []byte("/static/images/logo.svg"),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					table.Resolve(path)
				}
			})
			b.Run(fmt.Sprintf("lookup_%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					table.Lookup(path)
				}
			})
		}
	}
}

// All routes by turns, so that they do not stay in the first cache.
func BenchmarkTable_LookupAllRoutes(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		table := wide(b, n)
		var paths [][]byte
		for i := range 1 << 14 {
			paths = append(paths, fmt.Appendf(nil, "/team%d/service%d/v1/users", i*7919%n%37, i*7919%n))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			i := 0
			for b.Loop() {
				table.Lookup(paths[i&(len(paths)-1)])
				i++
			}
		})
	}
}

// Conformance case 200.
func BenchmarkTable_SixteenKiB(b *testing.B) {
	segments := bytes.Repeat([]byte("/a"), 8192)
	for _, c := range []struct {
		name  string
		table *route.Table[string]
		path  []byte
	}{
		{"8192_segments_wide", wide(b, 10_000), segments},
		{"8192_segments_deep", deep(b, 8192, 8192), segments},
		{"8192_segments_all_routes", deep(b, 8192, 1), segments},
		{"one_segment", wide(b, 10_000), append([]byte("/"), bytes.Repeat([]byte("a"), 16383)...)},
		{"all_escapes", wide(b, 10_000), append([]byte("/"), bytes.Repeat([]byte("%41"), 5461)...)},
		{"all_spaces", wide(b, 10_000), append([]byte("/"), bytes.Repeat([]byte("%20"), 5461)...)},
		{"all_slashes", wide(b, 10_000), bytes.Repeat([]byte("/"), 16384)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.table.Resolve(c.path)
			}
		})
	}
}
