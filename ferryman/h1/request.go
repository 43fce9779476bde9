package h1

import "bytes"

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
	Star        bool  // OPTIONS *
	Upgrade     bool  // asks for another protocol than h2c (RFC 9110 section 7.8)
	Continue    bool  // Expect: 100-continue before a body
	MaxForwards int64 // of an OPTIONS request; -1: none
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
// of its path.
func (r *Request) AppendTarget(dst []byte, cut int) []byte {
	if r.Star {
		return append(dst, star...)
	}
	rest := r.raw[r.target.from:r.target.to]
	if !r.emptyPath {
		rest = rest[cut:]
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
			upgrade = upgrade || !onlyH2C(value)
		case Expect:
			if r.Old() { // RFC 9110 section 10.1.1: it means nothing there
				continue
			}
			if !foldEqual(value, "100-continue") {
				return errExpectation
			}
			r.Continue = true
		case MaxForwards:
			if !r.Options {
				continue
			}
			n, ok := decimal(value)
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

// onlyH2C reports an Upgrade that asks for h2c and nothing else, which may be ignored.
func onlyH2C(value []byte) bool {
	for member := range bytes.SplitSeq(value, []byte(",")) {
		if from, to := unblank(member, 0, len(member)); !foldEqual(member[from:to], "h2c") {
			return false
		}
	}
	return true
}

// hops counts ferryman's own entries in a Via value.
func hops(value []byte) (n int) {
	for member := range bytes.SplitSeq(value, []byte(",")) {
		if from, to := unblank(member, 0, len(member)); foldEqual(member[from:to], "1.1 ferryman") {
			n++
		}
	}
	return n
}
