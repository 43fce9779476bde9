package h1

import "bytes"

// startLine reads the request line. Empty lines before it are the caller's to skip.
func (r *Request) startLine(b []byte) (done bool, err error) {
	line, err := r.line(b)
	switch {
	case line == nil:
		// A malformed beginning goes first, so that the answer does not hang on how the bytes are cut.
		if early := unfinishedStart(b[:r.scan]); early != nil {
			return false, early
		}
		return false, err
	case len(line) == 0:
		return false, errEmptyLine
	}
	r.begun = true
	return true, r.requestLine(line)
}

const (
	versionLen   = len("HTTP/1.1")
	maxStartLine = maxMethod + 1 + MaxTarget + 1 + versionLen
)

// unfinishedStart refuses what can no longer become a request line. It may see the same bytes again
// and again, so it looks at a few of them, and at all only where they are too many.
func unfinishedStart(b []byte) error {
	b = withoutCR(b)
	if len(b) <= maxStartLine {
		b = b[:min(len(b), maxMethod+1)]
	}
	_, _, _, err := splitStart(b)
	return err
}

// withoutCR takes away what may be the first half of a line end.
func withoutCR(b []byte) []byte { return bytes.TrimSuffix(b, []byte{'\r'}) }

// splitStart cuts a request line, or the beginning of one, at its two blanks, and refuses what
// cannot be the beginning of any.
func splitStart(line []byte) (method, target, version []byte, err error) {
	i := leading(line[:min(len(line), maxMethod+1)], isToken)
	switch {
	case i == len(line) && i <= maxMethod:
		return line, nil, nil, nil
	case i == 0 || i > maxMethod || line[i] != ' ':
		return nil, nil, nil, errMethod
	}
	method, rest := line[:i], line[i+1:]
	j := leading(rest[:min(len(rest), MaxTarget+1)], isTarget)
	switch {
	case j > MaxTarget:
		return nil, nil, nil, errTargetTooLong
	case j == len(rest):
		return method, rest, nil, nil
	case j == 0 || rest[j] != ' ':
		return nil, nil, nil, errTarget
	}
	target, version = rest[:j], rest[j+1:]
	if len(version) > versionLen {
		return nil, nil, nil, errVersion
	}
	return method, target, version, nil
}

func (r *Request) requestLine(line []byte) error {
	method, target, version, err := splitStart(line)
	if err != nil {
		return err
	}
	if len(version) != versionLen || string(version[:5]) != "HTTP/" || version[6] != '.' ||
		version[5]-'0' > 9 || version[7]-'0' > 9 {
		return errVersion
	}
	if version[5] != '1' {
		return errVersionMajor
	}
	if version[7] == '0' {
		r.old = true
	}
	r.method.to = uint32(len(method))
	switch string(method) {
	case "HEAD":
		r.HeadMethod = true
	case "CONNECT":
		r.Connect = true
	case "OPTIONS":
		r.Options = true
	case "TRACE":
		r.Trace = true
	case "PRI": // RFC 9113 section 3.4: never a method of HTTP/1.1
		return errMethod
	}
	return r.readTarget(target, r.method.to+1)
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
