package route

import (
	"errors"
	"fmt"
	"strings"
)

// Entry is one route.
type Entry[T any] struct {
	Prefix string // "/" or "/a/b"; "/a/b/" is the same as "/a/b"
	Value  T
}

// Table is an immutable set of routes: a trie of path segments, whose edges live in one hash table. The
// routes /, /api, /api/v1 and /img/small are
//
//	0 / --api--> 1 /api --v1--> 2 /api/v1
//	    --img--> 3 ..... --small--> 4 /img/small
//
// A lookup goes down along the path. From a node with many children it hashes the next segment to find the
// edge; an only child is compared straight away, so that even a very deep trie is fast. It ends at the first
// segment that no edge has. Hence its cost is that of reading so much of the path, whatever the number of
// routes. Most slots are free, and an edge is taken only if node and segment are the right ones: equal
// hashes cost time, they never lead to a wrong route.
type Table[T any] struct {
	entries []Entry[T]
	nodes   []node
	slots   []int32 // the node an edge leads to, at the edge's hash or after; 0 is free. A power of two of them
	longest int     // of the prefixes, in bytes
}

type node struct {
	segment string
	parent  int32
	entry   int32 // the route that ends here, or -1
	only    int32 // 0: no child, many: several, else the one
}

const many = -1

// Build makes a table; the order of the entries is irrelevant. The error names each prefix that is there
// twice, does not begin with a slash, or is not its own normal form. An empty table matches nothing.
func Build[T any](entries []Entry[T]) (*Table[T], error) {
	var errs []error
	edges, slots := 0, 4
	for _, e := range entries {
		edges += strings.Count(e.Prefix, "/")
	}
	for slots < 4*edges {
		slots *= 2
	}
	t := &Table[T]{nodes: []node{{entry: -1}}, slots: make([]int32, slots)}
	for _, e := range entries {
		prefix, err := cleanPrefix(e.Prefix)
		if err != nil {
			errs = append(errs, fmt.Errorf("prefix %q: %w", e.Prefix, err))
			continue
		}
		n := &t.nodes[t.insert(prefix)]
		if n.entry >= 0 {
			errs = append(errs, fmt.Errorf("prefix %q is there twice", prefix))
			continue
		}
		n.entry = int32(len(t.entries))
		t.entries = append(t.entries, Entry[T]{prefix, e.Value})
		t.longest = max(t.longest, len(prefix))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// insert returns the node of a prefix, and makes those on the way to it that are missing.
func (t *Table[T]) insert(prefix string) (at int32) {
	for segment := range strings.SplitSeq(prefix[1:], "/") {
		if segment == "" { // that of "/"
			break
		}
		child, slot := t.edge(at, []byte(segment))
		if child == 0 {
			child = int32(len(t.nodes))
			t.nodes = append(t.nodes, node{segment: segment, parent: at, entry: -1})
			t.slots[slot] = child
			if n := &t.nodes[at]; n.only == 0 {
				n.only = child
			} else {
				n.only = many
			}
		}
		at = child
	}
	return at
}

// edge returns the child of a node that the first segment of rest leads to, or 0 and the slot to put it in.
func (t *Table[T]) edge(at int32, rest []byte) (child int32, slot uint64) {
	const prime = 1099511628211 // FNV-1a; its low bits alone would crowd small tables
	hash := (14695981039346656037 ^ uint64(at)) * prime
	for _, c := range rest {
		if c == '/' {
			break
		}
		hash = (hash ^ uint64(c)) * prime
	}
	hash = (hash ^ hash>>32) * 0x9e3779b97f4a7c15 >> 32
	mask := uint64(len(t.slots) - 1)
	for slot = hash & mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		child = t.slots[slot]
		if n := &t.nodes[child]; n.parent == at && n.begins(rest) {
			return child, slot
		}
	}
	return 0, slot
}

// begins reports whether the node's segment is the first one of rest.
func (n *node) begins(rest []byte) bool {
	k := len(n.segment)
	return len(rest) >= k && string(rest[:k]) == n.segment && (len(rest) == k || rest[k] == '/')
}

// Lookup returns the route with the longest prefix of path that ends at a slash of path or at its end. It
// takes the path, without its query, as it is, and does not allocate. The path "*", that of OPTIONS *, is
// matched by the route "/".
func (t *Table[T]) Lookup(path []byte) (prefix string, v T, ok bool) { return t.route(t.find(path)) }

func (t *Table[T]) find(path []byte) (entry int32) {
	if !rooted(path) {
		return -1
	}
	entry = t.nodes[0].entry
	rest := path[1:min(len(path), t.longest+1)] // with the byte after the longest prefix, which must be a slash
	for at := int32(0); len(rest) > 0; {
		child := t.nodes[at].only
		if child == many {
			child, _ = t.edge(at, rest)
		}
		n := &t.nodes[child]
		if child == 0 || !n.begins(rest) { // of what edge found, begins is true; it is cheap
			break
		}
		at = child
		if n.entry >= 0 {
			entry = n.entry
		}
		rest = rest[min(len(n.segment)+1, len(rest)):]
	}
	return entry
}

func (t *Table[T]) route(entry int32) (prefix string, v T, ok bool) {
	if entry < 0 {
		return "", v, false
	}
	return t.entries[entry].Prefix, t.entries[entry].Value, true
}
