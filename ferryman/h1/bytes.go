package h1

import (
	"encoding/binary"
	"math"
)

// Classes of bytes (RFC 9110 section 5.6.2, RFC 9112 section 3.2).
const (
	isToken  = 1 << iota // tchar
	isValue              // HTAB, SP, VCHAR, obs-text
	isTarget             // what ferryman forwards in a target: no controls, no SP, no '#'
	isAlias              // '_' and '.': some upstreams read them as '-'
	isHost               // what a reg-name may hold here: letters, digits, "-._~"
)

var class = func() (t [256]byte) {
	for c := range t {
		if c >= 0x20 && c != 0x7f || c == '\t' {
			t[c] |= isValue
		}
		if c > 0x20 && c != 0x7f && c != '#' {
			t[c] |= isTarget
		}
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			t[c] |= isToken | isHost
		}
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= isToken
	}
	for _, c := range "-._~" {
		t[c] |= isHost
	}
	t['_'] |= isAlias
	t['.'] |= isAlias
	return t
}()

// leading is the number of bytes of the class at the front of b.
func leading(b []byte, of byte) int {
	for i, c := range b {
		if class[c]&of == 0 {
			return i
		}
	}
	return len(b)
}

// name is the number of token bytes at the front of line, with the classes that any of them is of.
func name(line []byte) (n int, classes byte) {
	for i, c := range line {
		k := class[c]
		if k&isToken == 0 {
			return i, classes
		}
		classes |= k
	}
	return len(line), classes
}

// isText reports whether b may be a field value. It looks for control characters eight bytes at a
// time; only what has one, if only a tab, is looked at byte by byte.
func isText(b []byte) bool {
	if len(b) < 8 {
		return leading(b, isValue) == len(b)
	}
	found := controls(b[len(b)-8:])
	for i := 0; i+8 <= len(b); i += 8 {
		found |= controls(b[i:])
	}
	return found == 0 || leading(b, isValue) == len(b)
}

// controls is not 0 if there is a byte below 0x20, or 0x7f, among the first eight of b.
func controls(b []byte) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	w := binary.LittleEndian.Uint64(b)
	del := w ^ 0x7f*ones
	return ((w-0x20*ones)&^w | (del-ones)&^del) & highs
}

func lower(c byte) byte {
	if c-'A' < 26 {
		return c | 0x20
	}
	return c
}

// foldEqual compares a with s, which has no capitals, without regard to ASCII case.
func foldEqual(a []byte, s string) bool {
	if len(a) != len(s) {
		return false
	}
	for i, c := range a {
		if c != s[i] && lower(c) != s[i] {
			return false
		}
	}
	return true
}

func foldEqualBytes(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// unblank returns what is left of b[from:to] without the blanks on both sides.
func unblank(b []byte, from, to int) (int, int) {
	for from < to && (b[from] == ' ' || b[from] == '\t') {
		from++
	}
	for to > from && (b[to-1] == ' ' || b[to-1] == '\t') {
		to--
	}
	return from, to
}

// decimal reads 1 to 19 digits that fit an int64; nothing else is a number on the wire.
func decimal(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0') // 19 digits overflow at most once, into a negative
		if n < 0 {
			return 0, false
		}
	}
	return n, true
}

// clamped reads a number of any length. One that is too large for an int64 is the largest.
func clamped(b []byte) (n int64, ok bool) {
	for _, c := range b {
		switch d := int64(c) - '0'; {
		case d < 0 || d > 9:
			return 0, false
		case n > (math.MaxInt64-d)/10:
			n = math.MaxInt64
		default:
			n = n*10 + d
		}
	}
	return n, len(b) > 0
}
