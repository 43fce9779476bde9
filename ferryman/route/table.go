// Package route finds the longest configured prefix of a request's path and refuses paths that an
// upstream could read in another way. It does not look at methods, hosts or queries.
//
//	table, err := route.Build([]route.Entry[string]{{"/", "web"}, {"/api", "backend"}})
//	prefix, value, ok, err := table.Resolve([]byte("/api/users")) // "/api", "backend", true, nil
package route

import (
	"errors"
	"fmt"
)

// Entry is one route.
type Entry[T any] struct {
	Prefix string // "/", or "/a/b"; "/a/b/" is the same prefix as "/a/b"
	Value  T
}

// Table is an immutable set of routes: a trie of path segments, all edges of which live in one hash table.
// The routes /, /api, /api/v1 and /img/small are
//
//	0 (route /) --"api"--> 1 (route /api) --"v1"--> 2 (route /api/v1)
//	            --"img"--> 3 --"small"--> 4 (route /img/small)
//
// and slots[hash of "/img/small"] is 4, or one of the slots after it is where that one was taken. A lookup
// goes from slash to slash, hashes on as it reads, follows one edge for each segment and stops at the first
// segment that has none. Thus its cost is that of reading the path: the number of routes does not enter.
// Invariants: at least three of four slots are free (0), and each edge is compared, parent and segment, so
// that a collision of hashes costs time and never leads to a wrong route.
type Table[T any] struct {
	entries []Entry[T]
	nodes   []node
	slots   []int32 // indices of nodes; a power of two of them
}

type node struct {
	hash    uint64 // of the path down to here
	parent  int32
	entry   int32 // index of the route that ends here, or -1
	segment string
}

const ( // FNV-1a
	hashSeed  uint64 = 14695981039346656037
	hashPrime uint64 = 1099511628211
)

// Build makes a table, in which the order of entries has no meaning. The error names every prefix that does
// not begin with a slash, that is there twice, or that no path could match unambiguously. An empty table is
// fine: it matches nothing.
func Build[T any](entries []Entry[T]) (*Table[T], error) {
	t := &Table[T]{nodes: []node{{entry: -1}}}
	var errs []error
	nodes := 1
	for _, e := range entries {
		prefix, err := cleanPrefix(e.Prefix)
		if err != nil {
			errs = append(errs, fmt.Errorf("prefix %q: %w", e.Prefix, err))
			continue
		}
		t.entries = append(t.entries, Entry[T]{prefix, e.Value})
		for i := range len(prefix) {
			if prefix[i] == '/' {
				nodes++
			}
		}
	}
	size := 4
	for size < 4*nodes {
		size *= 2
	}
	t.slots = make([]int32, size)
	for i := range t.entries {
		if n := &t.nodes[t.insert(t.entries[i].Prefix)]; n.entry < 0 {
			n.entry = int32(i)
		} else {
			errs = append(errs, fmt.Errorf("prefix %q is there twice", t.entries[i].Prefix))
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// insert returns the node of a prefix, and makes those on the way to it that are missing.
func (t *Table[T]) insert(prefix string) int32 {
	at, h := int32(0), hashSeed
	for begin := 1; begin < len(prefix); {
		end := begin
		for ; end < len(prefix) && prefix[end] != '/'; end++ {
			h = (h ^ uint64(prefix[end])) * hashPrime
		}
		slot, next := t.edge(at, h, []byte(prefix[begin:end]))
		if next == 0 {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, node{hash: h, parent: at, entry: -1, segment: prefix[begin:end]})
			t.slots[slot] = next
		}
		at, begin, h = next, end+1, (h^'/')*hashPrime
	}
	return at
}

// edge returns the node that a segment leads to from its parent, with its slot, or else 0 and the slot
// where it would have to be.
func (t *Table[T]) edge(parent int32, h uint64, segment []byte) (slot int, child int32) {
	mask := len(t.slots) - 1
	for slot = int(h^h>>32) & mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		child = t.slots[slot]
		if n := &t.nodes[child]; n.hash == h && n.parent == parent && n.segment == string(segment) {
			return slot, child
		}
	}
	return slot, 0
}

// Lookup returns the route with the longest prefix of path that ends at a slash of path or at its end. The
// path is taken as it is, without its query and nothing decoded. It does not allocate. The path "*", that
// of OPTIONS *, belongs to the route "/".
func (t *Table[T]) Lookup(path []byte) (prefix string, v T, ok bool) { return t.at(t.find(path)) }

func (t *Table[T]) at(entry int32) (prefix string, v T, ok bool) {
	if entry < 0 {
		return "", v, false
	}
	e := &t.entries[entry]
	return e.Prefix, e.Value, true
}

func (t *Table[T]) find(path []byte) (entry int32) {
	if !rooted(path) {
		return -1
	}
	at, h := int32(0), hashSeed
	entry = t.nodes[0].entry
	for begin := 1; begin < len(path); {
		end := begin
		for ; end < len(path) && path[end] != '/'; end++ {
			h = (h ^ uint64(path[end])) * hashPrime
		}
		if _, at = t.edge(at, h, path[begin:end]); at == 0 {
			break
		}
		if e := t.nodes[at].entry; e >= 0 {
			entry = e
		}
		begin, h = end+1, (h^'/')*hashPrime
	}
	return entry
}
