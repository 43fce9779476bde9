package route

import (
	"errors"
	"fmt"
)

// What is wrong with a path. All of them mean 400: the path that is matched and the path that the upstream
// acts on could differ.
var (
	ErrNotRooted  = errors.New("path does not begin with a slash")
	ErrDotSegment = errors.New("path has a dot segment")
	ErrEscape     = errors.New("path has a malformed percent escape")
	ErrNUL        = errors.New("path has an encoded NUL")
	ErrBackslash  = errors.New("path has a backslash")
	ErrFragment   = errors.New("path has a fragment")
	ErrAmbiguous  = errors.New("path has another route in its normal form")
)

// Resolve is Check, then Lookup; it also refuses, with ErrAmbiguous, a path whose normal form has another
// route. That is as strict as looking at the decoded and the merged path one by one, for a prefix is in
// normal form itself: each step towards the normal form can only find the same or a longer one. With an
// error there is no route. It does not allocate, unless a path of over 512 bytes has escapes or runs of
// slashes.
func (t *Table[T]) Resolve(path []byte) (prefix string, v T, ok bool, err error) {
	normal, err := scan(path)
	if err != nil {
		return "", v, false, err
	}
	entry := t.find(path)
	if !normal {
		var buf [512]byte
		if t.find(appendNormal(buf[:0], path)) != entry {
			return "", v, false, ErrAmbiguous
		}
	}
	prefix, v, ok = t.at(entry)
	return prefix, v, ok, nil
}

// Check returns an error for a path that is refused whatever the routes are: one with a dot segment, also
// percent-encoded, a malformed escape, %00, a raw backslash or a raw #, or without a slash at its start
// unless it is "*".
func Check(path []byte) error {
	_, err := scan(path)
	return err
}

func rooted(path []byte) bool { return len(path) > 0 && path[0] == '/' || string(path) == "*" }

var special = [256]bool{'/': true, '%': true, '\\': true, '#': true}

// scan is Check; normal is true where the path certainly is its own normal form.
func scan(path []byte) (normal bool, err error) {
	if !rooted(path) {
		return false, ErrNotRooted
	}
	normal = true
	for i := 0; i < len(path); i++ {
		if !special[path[i]] {
			continue
		}
		switch path[i] {
		case '/':
			if i+1 < len(path) && path[i+1] == '/' {
				normal = false
			} else if dotSegment(path[i+1:]) {
				return false, ErrDotSegment
			}
		case '%':
			c, ok := unescape(path[i:])
			if !ok {
				return false, ErrEscape
			}
			if c == 0 {
				return false, ErrNUL
			}
			normal = false
			i += 2
		case '\\':
			return false, ErrBackslash
		case '#':
			return false, ErrFragment
		}
	}
	return normal, nil
}

// dotSegment reports whether rest begins with a segment "." or "..", however it is written.
func dotSegment(rest []byte) bool {
	for dots := 0; len(rest) > 0 && rest[0] != '/'; dots++ {
		n := 1
		if rest[0] == '%' {
			n = 3
		}
		if c, ok := unescape(rest); dots == 2 || c != '.' || !ok {
			return false
		}
		if rest = rest[n:]; len(rest) == 0 || rest[0] == '/' {
			return true
		}
	}
	return false
}

// unescape returns the first byte of s, decoded; ok is false where it is a malformed escape.
func unescape(s []byte) (c byte, ok bool) {
	if s[0] != '%' {
		return s[0], true
	}
	if len(s) < 3 {
		return 0, false
	}
	hi, lo := unhex(s[1]), unhex(s[2])
	return hi<<4 | lo, hi < 16 && lo < 16
}

// unhex returns the value of a hexadecimal digit, and 16 for any other byte.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

// appendNormal appends the normal form of a path that scan accepts (RFC 3986 section 6.2.2): escapes of
// unreserved characters decoded, other escapes in upper case, and runs of slashes merged.
func appendNormal(dst, path []byte) []byte {
	for i := 0; i < len(path); i++ {
		c, _ := unescape(path[i:])
		switch {
		case path[i] != '%':
			if c != '/' || len(dst) == 0 || dst[len(dst)-1] != '/' {
				dst = append(dst, c)
			}
			continue
		case unreserved(c):
			dst = append(dst, c)
		default:
			dst = append(dst, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
		i += 2
	}
	return dst
}

func unreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// cleanPrefix returns a configured prefix without its trailing slash.
func cleanPrefix(prefix string) (string, error) {
	if len(prefix) > 1 && prefix[len(prefix)-1] == '/' {
		prefix = prefix[:len(prefix)-1]
	}
	if prefix == "*" {
		return "", ErrNotRooted
	}
	if err := Check([]byte(prefix)); err != nil {
		return "", err
	}
	for _, c := range []byte(prefix) {
		if c <= ' ' || c == 0x7f || c == '?' {
			return "", fmt.Errorf("no path can hold %q", c)
		}
	}
	if normal := appendNormal(nil, []byte(prefix)); string(normal) != prefix {
		return "", fmt.Errorf("write it as %q", normal)
	}
	return prefix, nil
}
