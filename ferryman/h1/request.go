package h1

import (
	"bytes"
	"iter"
)

// Request is a parsed request head. The zero value is ready; one value serves request after
// request without allocating.
type Request struct {
	Head
	method, target, path, host span
	hostField                  span // the Host field, also where an absolute target overrules it
	emptyPath                  bool // absolute target without a path: "/" stands for it

	Bodiless    bool  // neither a length nor a coding
	HeadMethod  bool  // HEAD
	Connect     bool  // CONNECT
	Options     bool  // OPTIONS
	Trace       bool  // TRACE
	Star        bool  // OPTIONS *
	Upgrade     bool  // asks for another protocol that cannot be declined (RFC 9110 section 7.8)
	Continue    bool  // Expect: 100-continue before a body
	MaxForwards int64 // of an OPTIONS or TRACE request; -1: none
	Hops        int   // how often ferryman stands in Via
}

// Reset prepares r for the next head.
func (r *Request) Reset() {
	r.Head.reset()
	*r = Request{Head: r.Head}
}

// Method returns the method as it came; it is case-sensitive.
func (r *Request) Method() []byte { return r.raw[r.method.from:r.method.to] }

// Host returns what the Host field or, where there is one, the absolute target says. It is empty
// only for HTTP/1.0.
func (r *Request) Host() []byte { return r.raw[r.host.from:r.host.to] }

var slash, star = []byte("/"), []byte("*")

// Path returns the path without its query, "/" for "*".
func (r *Request) Path() []byte {
	if r.emptyPath || r.Star {
		return slash
	}
	return r.raw[r.path.from:r.path.to]
}

// AppendTarget appends the target in the form that an upstream gets, without the first cut bytes
// of its path. What a cut leaves does not begin with two slashes: that could be taken for an authority.
func (r *Request) AppendTarget(dst []byte, cut int) []byte {
	if r.Star {
		return append(dst, star...)
	}
	rest := r.raw[r.target.from:r.target.to]
	if !r.emptyPath {
		rest = rest[cut:]
	}
	for cut > 0 && len(rest) > 1 && rest[0] == '/' && rest[1] == '/' {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0] != '/' {
		dst = append(dst, '/')
	}
	return append(dst, rest...)
}

// ExpectsBody reports a method that gives a body a meaning (RFC 9110 section 8.6).
func (r *Request) ExpectsBody() bool {
	switch string(r.Method()) {
	case "POST", "PUT", "PATCH":
		return true
	}
	return false
}

// Idempotent reports a method that may be sent twice (RFC 9110 section 9.2.2).
func (r *Request) Idempotent() bool { return IdempotentMethod(r.Method()) }

// IdempotentMethod reports a method that may be sent twice (RFC 9110 section 9.2.2).
func IdempotentMethod(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// Parse goes on with a head of which b holds what has arrived so far; b may move between calls
// but only grow. It returns the length of the head once it is whole and 0 where bytes are missing.
func (r *Request) Parse(b []byte) (int, error) {
	if !r.begun {
		if done, err := r.startLine(b); !done || err != nil {
			return 0, err
		}
	}
	done, err := r.fields(b)
	if !done || err != nil {
		return 0, err
	}
	return r.pos, r.finish()
}

// finish checks what only the whole head can tell.
func (r *Request) finish() error {
	upgrade := false
	r.MaxForwards = -1
	for i := range r.Fields {
		f := &r.Fields[i]
		if f.Kind == Other {
			continue
		}
		switch value := r.ValueOf(f); f.Kind {
		case Host:
			if r.hostField.to != 0 {
				return errRepeatedHost
			}
			if len(value) > 0 && !ValidHost(value) || len(value) == 0 && !r.Old() {
				return errHost
			}
			r.hostField = span{f.Value, f.ValueEnd}
		case Upgrade:
			upgrade = upgrade || asks(value)
		case Expect:
			if r.Old() { // RFC 9110 section 10.1.1: it means nothing there
				continue
			}
			if !foldEqual(value, "100-continue") {
				return errExpectation
			}
			r.Continue = true
		case MaxForwards:
			if !r.Options && !r.Trace {
				continue
			}
			n, ok := clamped(value)
			if !ok || r.MaxForwards >= 0 {
				return errMaxForwards
			}
			r.MaxForwards = n
		case Via:
			r.Hops += hops(value)
		}
	}
	if r.hostField.to == 0 && !r.Old() {
		return errNoHost
	}
	if r.host.to == 0 {
		r.host = r.hostField
	}
	r.Bodiless = !r.hasLength && r.codings == 0
	r.Continue = r.Continue && (r.length > 0 || r.codings > 0)
	r.Upgrade = upgrade && r.optUpgrade && !r.Old()
	return r.framed()
}

// asks reports whether an Upgrade asks for anything but what may be declined.
func asks(upgrade []byte) bool {
	for protocol := range members(upgrade) {
		if !declinable(protocol) {
			return true
		}
	}
	return false
}

// declinable reports a protocol that clients offer with any request and do without: newer HTTP, and TLS
// (RFC 2817).
func declinable(protocol []byte) bool {
	name, _, _ := bytes.Cut(protocol, []byte("/"))
	return len(protocol) == 0 || foldEqual(name, "h2c") || foldEqual(name, "h2") || foldEqual(name, "http") || foldEqual(name, "tls")
}

// AppendUpgrade appends the Upgrade line of a request that asks for one, without what may be declined: an
// upstream must not take that up in its place.
func (r *Request) AppendUpgrade(dst []byte) []byte {
	before := "Upgrade: "
	for i := range r.Fields {
		f := &r.Fields[i]
		if f.Kind != Upgrade {
			continue
		}
		for protocol := range members(r.ValueOf(f)) {
			if !declinable(protocol) {
				dst = append(append(dst, before...), protocol...)
				before = ", "
			}
		}
	}
	return append(dst, "\r\n"...)
}

// hops counts ferryman's own entries in a Via value.
func hops(via []byte) (n int) {
	for entry := range members(via) {
		if foldEqual(entry, "1.1 ferryman") {
			n++
		}
	}
	return n
}

// members are those of a list, without the blanks around them (RFC 9110 section 5.6.1).
func members(value []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for member := range bytes.SplitSeq(value, []byte(",")) {
			if from, to := unblank(member, 0, len(member)); !yield(member[from:to]) {
				return
			}
		}
	}
}
