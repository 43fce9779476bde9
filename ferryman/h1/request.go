package h1

import "bytes"

// Request is a parsed request head. The zero value is ready; one value serves request after
// request without allocating.
type Request struct {
	Head
	method, target, path, host span
	hostField                  span // the Host field, also where an absolute target overrules it

	Bodiless    bool  // neither a length nor a coding
	HeadMethod  bool  // HEAD
	Connect     bool  // CONNECT
	Options     bool  // OPTIONS
	Star        bool  // OPTIONS *
	Upgrade     bool  // asks for another protocol than h2c (RFC 9110 section 7.8)
	Continue    bool  // Expect: 100-continue before a body
	emptyPath   bool  // absolute target without a path: "/" stands for it
	MaxForwards int64 // -1: none
	Hops        int   // how often ferryman stands in Via
}

// Reset prepares r for the next head.
func (r *Request) Reset() {
	r.Head.reset()
	*r = Request{Head: r.Head, MaxForwards: -1}
}

// Method, Host and Path return parts of the head; Path is without the query, as it came.
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

func (r *Request) startLine(b []byte) (bool, error) {
	start := r.pos
	line, err := r.line(b)
	if err != nil {
		return false, err
	}
	if line == nil {
		return false, partialStart(b[start:])
	}
	if len(line) == 0 { // RFC 9112 section 2.2: one empty line may precede
		if start > 0 {
			return false, errEmptyLines
		}
		return r.startLine(b)
	}
	r.begun = true
	return true, r.requestLine(line, uint32(start))
}

// partialStart refuses early what can no longer become a request line.
func partialStart(b []byte) error {
	if len(b) > 0 && b[0] == '\r' {
		if len(b) > 1 {
			return errStartLine
		}
		return nil
	}
	head := b[:min(len(b), maxMethod+1)]
	i := bytes.IndexByte(head, ' ')
	switch {
	case i < 0 && (len(head) > maxMethod || !all(head, isToken)):
		return errMethod
	case i >= 0 && !isTokenBytes(head[:i]):
		return errMethod
	case i >= 0 && len(b)-i-1 > MaxTarget && bytes.IndexByte(b[i+1:i+2+MaxTarget], ' ') < 0:
		return errTargetTooLong
	}
	return nil
}

func (r *Request) requestLine(line []byte, at uint32) error {
	i := bytes.IndexByte(line, ' ')
	if i < 0 {
		return errStartLine
	}
	method := line[:i]
	if len(method) > maxMethod || !isTokenBytes(method) {
		return errMethod
	}
	rest := line[i+1:]
	j := bytes.IndexByte(rest, ' ')
	if j > MaxTarget || j < 0 && len(rest) > MaxTarget {
		return errTargetTooLong
	}
	if j <= 0 {
		return errStartLine
	}
	target, version := rest[:j], rest[j+1:]
	if len(version) != 8 || string(version[:5]) != "HTTP/" || version[6] != '.' ||
		version[5]-'0' > 9 || version[7]-'0' > 9 {
		return errVersion
	}
	if version[5] != '1' {
		return errVersionMajor
	}
	if version[7] == '0' {
		r.minor = 0
	}
	if !all(target, isTarget) {
		return errTarget
	}
	r.method = span{at, at + uint32(i)}
	r.HeadMethod = string(method) == "HEAD"
	r.Connect = string(method) == "CONNECT"
	r.Options = string(method) == "OPTIONS"
	return r.readTarget(target, at+uint32(i)+1)
}

// readTarget tells the four forms of RFC 9112 section 3.2 apart.
func (r *Request) readTarget(target []byte, at uint32) error {
	switch {
	case r.Connect:
		if !ValidHost(target) || bytes.LastIndexByte(target, ':') <= bytes.LastIndexByte(target, ']') {
			return errTarget
		}
		r.target = span{at, at + uint32(len(target))}
		return nil
	case target[0] == '/':
	case r.Options && string(target) == "*":
		r.Star = true
		return nil
	default:
		skip, err := r.absolute(target, at)
		if err != nil || r.Star {
			return err
		}
		target, at = target[skip:], at+uint32(skip)
	}
	r.target = span{at, at + uint32(len(target))}
	r.path = r.target
	if q := bytes.IndexByte(target, '?'); q >= 0 {
		r.path.to = at + uint32(q)
	}
	return nil
}

// absolute reads scheme and authority and returns where the path starts.
func (r *Request) absolute(target []byte, at uint32) (int, error) {
	skip := len("http://")
	if len(target) > skip && foldEqual(target[:skip+1], "https://") {
		skip++
	} else if len(target) < skip || !foldEqual(target[:skip], "http://") {
		return 0, errTarget
	}
	end := skip
	for end < len(target) && target[end] != '/' && target[end] != '?' {
		end++
	}
	if !ValidHost(target[skip:end]) {
		return 0, errTarget
	}
	r.host = span{at + uint32(skip), at + uint32(end)}
	r.emptyPath = end == len(target) || target[end] == '?'
	r.Star = r.Options && end == len(target) // RFC 9112 section 3.2.4
	return end, nil
}

// finish checks what only the whole head can tell.
func (r *Request) finish() error {
	upgrade := false
	for i := range r.Fields {
		f := &r.Fields[i]
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
			upgrade = upgrade || !foldEqual(value, "h2c")
		case Expect:
			if r.Old() {
				continue
			}
			if !foldEqual(value, "100-continue") {
				return errExpectation
			}
			r.Continue = true
		case MaxForwards:
			n, ok := decimal(value)
			if r.Options && (!ok || r.MaxForwards >= 0) {
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
	r.Bodiless = r.length < 0 && r.codings == 0
	r.Continue = r.Continue && !r.Bodiless
	r.Upgrade = upgrade && r.optUpgrade && !r.Old()
	return r.framed()
}

// hops counts ferryman's own entries in a Via value.
func hops(value []byte) (n int) {
	for member := range bytes.SplitSeq(value, []byte(",")) {
		if foldEqual(trimBlanks(member), "1.1 ferryman") {
			n++
		}
	}
	return n
}
