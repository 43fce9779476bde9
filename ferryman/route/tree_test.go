package route

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tree prints a table, one node a line, as the trie that the comment on Table draws.
func tree[T any](t *Table[T]) string {
	var b strings.Builder
	var show func(at int32, depth int)
	show = func(at int32, depth int) {
		n := t.nodes[at]
		fmt.Fprintf(&b, "%s%d %q", strings.Repeat("  ", depth), at, n.segment)
		if n.entry >= 0 {
			fmt.Fprintf(&b, " route %s", t.entries[n.entry].Prefix)
		}
		switch {
		case n.only == many:
			b.WriteString(" many\n")
		case n.only != 0:
			fmt.Fprintf(&b, " only %d\n", n.only)
		default:
			b.WriteString("\n")
		}
		for child := at + 1; int(child) < len(t.nodes); child++ {
			if t.nodes[child].parent == at {
				show(child, depth+1)
			}
		}
	}
	show(0, 0)
	return b.String()
}

func TestTable_IsATrieOfSegments(t *testing.T) {
	table, err := Build([]Entry[int]{
		{Prefix: "/"}, {Prefix: "/api"}, {Prefix: "/api/v1"}, {Prefix: "/img/small"}, {Prefix: "/img/large"}, {Prefix: "/x/y/z"},
	})
	require.NoError(t, err)
	require.Equal(t, `0 "" route / many
  1 "api" route /api only 2
    2 "v1" route /api/v1
  3 "img" many
    4 "small" route /img/small
    5 "large" route /img/large
  6 "x" only 7
    7 "y" only 8
      8 "z" route /x/y/z
`, tree(table))
	require.Equal(t, len("/img/small"), table.longest)
}

// The invariants that Lookup relies on: every node but the root is found from its parent, most slots are
// free, and runs of taken slots, which is what a miss costs, stay short.
func TestTable_HashTableIsSparseAndComplete(t *testing.T) {
	var entries []Entry[int]
	for i := range 10_000 {
		entries = append(entries, Entry[int]{Prefix: fmt.Sprintf("/t%d/service-%d/v%d", i%50, i, i%3)})
	}
	table, err := Build(entries)
	require.NoError(t, err)
	for child := 1; child < len(table.nodes); child++ {
		n := table.nodes[child]
		found, _ := table.edge(n.parent, []byte(n.segment+"/x"))
		require.EqualValues(t, child, found, n.segment)
	}
	run, longest, taken := 0, 0, 0
	for _, child := range append(table.slots, table.slots...) {
		if child == 0 {
			run = 0
			continue
		}
		run++
		taken++
		longest = max(longest, run)
	}
	require.Equal(t, len(table.nodes)-1, taken/2)
	require.LessOrEqual(t, 4*taken/2, len(table.slots))
	require.Less(t, longest, 40)
}

// Conformance case 200: time is linear in the length of the path. An absolute time is no gate on a shared
// machine; eight times the length may cost up to 24 times as much, and would cost 64 if it were quadratic.
func TestTable_TimeIsLinearInTheLengthOfThePath(t *testing.T) {
	var entries []Entry[int]
	for i := range 9_900 {
		entries = append(entries, Entry[int]{Prefix: fmt.Sprintf("/t%d/service%d", i%50, i)})
	}
	for i := range 100 { // one way down with all segments of the path, and routes and side ways on it
		entries = append(entries, Entry[int]{Prefix: strings.Repeat("/a", 81*(i+1))})
	}
	table, err := Build(entries)
	require.NoError(t, err)
	best := func(segments int) time.Duration {
		path, least := []byte(strings.Repeat("/a", segments)), time.Hour
		for range 50 {
			began := time.Now()
			for range 10 {
				_, _, ok, err := table.Resolve(path)
				require.True(t, ok && err == nil)
			}
			least = min(least, time.Since(began)/10)
		}
		return least
	}
	short, long := best(1000), best(8000)
	t.Logf("1,000 segments: %s, 8,000 segments: %s", short, long)
	require.Less(t, long, 24*short)
}
