package route

import (
	"errors"
	"fmt"
	"strings"
)

// What is wrong with a path. All mean 400: the path that is matched and the one that the upstream acts on
// could differ.
var (
	ErrNotRooted  = errors.New("path does not begin with a slash")
	ErrDotSegment = errors.New("path has a dot segment")
	ErrEscape     = errors.New("path has a malformed escape")
	ErrNUL        = errors.New("path has an encoded NUL")
	ErrBackslash  = errors.New("path has a backslash")
	ErrFragment   = errors.New("path has a fragment")
	ErrAmbiguous  = errors.New("normal form of the path has another route")
)

// shortPath is up to how many bytes a path that is not plain costs no allocation.
const shortPath = 1024

// Resolve is Check and Lookup; it also refuses, with ErrAmbiguous, a path whose normal form has another
// route. With an error there is no route.
//
// The normal form stands for all that lies between it and the raw path, such as only decoded or only
// merged: prefixes are in normal form, so each step towards it can but keep the route or find a longer one.
func (t *Table[T]) Resolve(path []byte) (prefix string, v T, ok bool, err error) {
	entry := t.find(path)
	if !plain(path) {
		normal, err := appendNormal(make([]byte, 0, shortPath), path)
		if err != nil {
			return "", v, false, err
		}
		if t.find(normal) != entry {
			return "", v, false, ErrAmbiguous
		}
	}
	prefix, v, ok = t.route(entry)
	return prefix, v, ok, nil
}

// Check returns an error for a path that no table resolves: with a dot segment, percent-encoded or not, a
// malformed escape, %00, a raw backslash or #, or without a slash at its start, except for "*".
func Check(path []byte) error {
	if plain(path) {
		return nil
	}
	_, err := appendNormal(make([]byte, 0, shortPath), path)
	return err
}

func rooted(path []byte) bool { return len(path) > 0 && path[0] == '/' || string(path) == "*" }

// Bytes that keep a path from being plain: always, or after a slash.
const always, afterSlash = 1, 2

var doubts = [256]byte{'%': always, '\\': always, '#': always, '/': afterSlash, '.': afterSlash}

// plain reports whether a path is beyond doubt: accepted, and its own normal form.
func plain(path []byte) bool {
	found, mask := byte(0), byte(always)
	for _, c := range path { // nearly without branches, for this is most of what an ordinary path costs
		found |= doubts[c] & mask
		mask = always
		if c == '/' {
			mask |= afterSlash
		}
	}
	return found == 0 && rooted(path)
}

// appendNormal appends to dst, which is empty, the normal form of path (RFC 3986 section 6.2.2): escapes
// of unreserved characters decoded, other escapes in upper case, runs of slashes merged.
func appendNormal(dst, path []byte) ([]byte, error) {
	if !rooted(path) {
		return nil, ErrNotRooted
	}
	if cap(dst) < len(path) { // slices.Grow allocates twice under the race detector
		dst = make([]byte, 0, len(path)) // a normal form is no longer than its path
	}
	segment := 0 // where the present one begins in dst, which is empty
	piece := 0   // where what an upstream may take for one begins: behind a slash or backslash, encoded or not
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '/':
			if i > 0 && len(dst) == segment {
				continue
			}
			if dots(dst[piece:]) {
				return nil, ErrDotSegment
			}
			dst = append(dst, '/')
			segment, piece = len(dst), len(dst)
		case ';': // to many upstreams, where the parameters of a segment begin
			if dots(dst[piece:]) {
				return nil, ErrDotSegment
			}
			dst = append(dst, ';')
		case '%':
			if len(path) < i+3 {
				return nil, ErrEscape
			}
			octet := hexDigits[path[i+1]]<<4 | hexDigits[path[i+2]]
			if octet > 0xFF {
				return nil, ErrEscape
			}
			if octet == 0 {
				return nil, ErrNUL
			}
			i += 2
			if unreserved[octet] {
				dst = append(dst, byte(octet))
				continue
			}
			ends := octet == '/' || octet == '\\'
			if (ends || octet == ';') && dots(dst[piece:]) {
				return nil, ErrDotSegment
			}
			dst = append(dst, '%', upperHex[octet>>4], upperHex[octet&15])
			if ends {
				piece = len(dst)
			}
		case '\\':
			return nil, ErrBackslash
		case '#':
			return nil, ErrFragment
		default:
			dst = append(dst, c)
		}
	}
	if dots(dst[piece:]) {
		return nil, ErrDotSegment
	}
	return dst, nil
}

// dots reports a dot segment, as far as it has come without a parameter.
func dots(piece []byte) bool { return string(piece) == "." || string(piece) == ".." }

const upperHex = "0123456789ABCDEF"

// Tables, for a path of 16 KiB may be all escapes.
var (
	unreserved = [256]bool{'-': true, '.': true, '_': true, '~': true} // RFC 3986 section 2.3
	hexDigits  [256]uint16                                             // the value of a digit; beyond a byte where there is none
)

func init() {
	for c := range hexDigits {
		unreserved[c] = unreserved[c] || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		hexDigits[c] = 0x100
	}
	for v, c := range []byte(upperHex) {
		hexDigits[c], hexDigits[c|0x20] = uint16(v), uint16(v)
	}
}

// cleanPrefix returns a configured prefix without its trailing slash.
func cleanPrefix(prefix string) (string, error) {
	normal, err := appendNormal(nil, []byte(prefix))
	switch {
	case err != nil:
		return "", err
	case prefix == "*":
		return "", ErrNotRooted
	case string(normal) != prefix:
		return "", fmt.Errorf("not in normal form: write %q", normal)
	}
	return Trim(prefix), nil
}

// Trim takes the slash off a prefix's end: both are the same prefix.
func Trim(prefix string) string {
	if prefix == "/" {
		return prefix
	}
	return strings.TrimSuffix(prefix, "/")
}
