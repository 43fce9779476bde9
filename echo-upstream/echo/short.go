package echo

import "bytes"

var (
	methodGet = []byte("GET ")
	version11 = []byte(" HTTP/1.1")
	version10 = []byte(" HTTP/1.0")
	lineEnd   = []byte("\r\n")
	headEnd   = []byte("\r\n\r\n")
)

// short returns the length of the request that b begins with, if all of it is there and the fixed answer of
// /echo is all that it asks for; else 0. last is whether the connection ends with that answer. Whatever is
// in doubt, such as a field that says how the message goes on, is not short: it is left to the server that
// knows all of HTTP.
func short(b []byte) (n int, last bool) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return 0, false
	}
	line, fields, _ := bytes.Cut(b[:end+len(lineEnd)], lineEnd)
	target, isGet := bytes.CutPrefix(line, methodGet)
	target, current := bytes.CutSuffix(target, version11)
	if !current {
		if target, last = bytes.CutSuffix(target, version10); !last {
			return 0, false
		}
	}
	if e, _ := choose(target); !isGet || e != echoEndpoint || !printable(target) || target[0] != '/' {
		return 0, false
	}
	last, ok := plainFields(fields, last)
	if !ok {
		return 0, false
	}
	return end + len(headEnd), last
}

// plainFields reports whether fields, each with its line's end, are well-formed and say nothing of the
// message's form; and whether they, or else the version, end the connection.
func plainFields(fields []byte, last bool) (closes, ok bool) {
	hosts := 0
	for len(fields) > 0 {
		var line []byte
		line, fields, _ = bytes.Cut(fields, lineEnd)
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !token(name) || !text(value) {
			return false, false
		}
		switch {
		case is(name, "host"):
			hosts++
			if !plainHost(bytes.TrimSpace(value)) {
				return false, false
			}
		case is(name, "connection"):
			if !is(bytes.TrimSpace(value), "close") {
				return false, false
			}
			last = true
		case is(name, "content-length"), is(name, "transfer-encoding"), is(name, "expect"), is(name, "upgrade"), is(name, "trailer"):
			return false, false
		}
	}
	return last, hosts == 1
}

// is reports whether b is name, which is in lower case, in any case.
func is(b []byte, name string) bool {
	return len(b) == len(name) && b[0]|0x20 == name[0] && bytes.EqualFold(b, []byte(name))
}

// Classes of bytes, RFC 9110 section 5.6.2 and RFC 9112 section 3.2.
const isToken, isPrintable, isText = 1, 2, 4

var classes = func() (c [256]byte) {
	for b := '!'; b <= '~'; b++ {
		c[b] = isPrintable | isText
	}
	for b := 0x80; b <= 0xFF; b++ {
		c[b] = isText
	}
	c[' '], c['\t'] = isText, isText
	for _, b := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		c[b] |= isToken
	}
	return c
}()

func token(b []byte) bool     { return len(b) > 0 && all(b, isToken) }
func printable(b []byte) bool { return all(b, isPrintable) }
func text(b []byte) bool      { return all(b, isText) }

func all(b []byte, class byte) bool {
	have := class
	for _, c := range b {
		have &= classes[c]
	}
	return have != 0
}

// plainHost reports a name or an IPv4 address, with or without a port: what else is valid the server knows.
func plainHost(b []byte) bool {
	for _, c := range b {
		if c|0x20 < 'a' && c < '-' || classes[c]&isToken == 0 && c != ':' {
			return false
		}
	}
	return len(b) > 0
}
