package wire

import "bytes"

var (
	endOfHead = []byte("\r\n\r\n")
	version1  = []byte("HTTP/1.")
)

// tokenBytes are the bytes of RFC 9110 tokens.
var tokenBytes = func() (set [256]bool) {
	for c := byte('0'); c <= 'z'; c++ {
		set[c] = c <= '9' || c >= 'a' || (c >= 'A' && c <= 'Z')
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		set[c] = true
	}
	return set
}()

// head takes bytes until the head is whole. One that comes in a single piece, as nearly all do, is
// read where it lies.
func (s *Scanner) head(p []byte) (n int, err error) {
	if len(s.carry) == 0 {
		if end := bytes.Index(p, endOfHead); end >= 0 && end <= maxHead {
			return end + 4, s.parse(p[:end+4])
		}
	}
	before := len(s.carry)
	s.carry = append(s.carry, p[:min(len(p), maxHead+4)]...)
	from := max(0, before-3) // the end may have begun in what was there
	end := bytes.Index(s.carry[from:], endOfHead)
	if end < 0 {
		if len(s.carry) > maxHead {
			return len(p), malformed("head over 64 KiB")
		}
		if k := min(len(s.carry), len(version1)); !bytes.Equal(s.carry[:k], version1[:k]) {
			return len(p), malformed("no HTTP/1 status line")
		}
		return len(p), nil
	}
	head := s.carry[:from+end+4]
	s.carry = s.carry[:0]
	return len(head) - before, s.parse(head)
}

// framing collects what the fields say about the body's length (RFC 9112 section 6.3).
type framing struct {
	length     int64 // -1: no Content-Length
	digits     int   // of the length: it may be repeated, as it was
	chunked    bool
	closes     bool
	keepsAlive bool
}

// parse reads a whole head, its blank line included, and decides on the framing.
func (s *Scanner) parse(head []byte) error {
	line, rest, ok := cutLine(head)
	minor, status, good := statusLine(line)
	if !ok || !good {
		return malformed("bad status line")
	}
	f := framing{length: -1}
	retryAfter := false
	for {
		line, rest, ok = cutLine(rest)
		if !ok {
			return malformed("bare CR or LF in the head")
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := field(line)
		if !ok {
			return malformed("bad field line")
		}
		retryAfter = retryAfter || named(name, retryAfterName)
		if err := f.read(name, value); err != nil {
			return err
		}
	}
	if status < 200 {
		if status == 101 {
			return malformed("101 to a request that asked for no upgrade")
		}
		return nil // the final head follows
	}
	s.Status, s.RetryAfter = status, retryAfter
	s.Close = f.closes || (minor == 0 && !f.keepsAlive)
	return s.choose(f, minor)
}

// choose sets the state that reads the body.
func (s *Scanner) choose(f framing, minor int) error {
	switch {
	case f.chunked && f.length >= 0:
		return malformed("both Transfer-Encoding and Content-Length")
	case f.chunked && minor == 0:
		return malformed("Transfer-Encoding in HTTP/1.0")
	case s.expect.NoBody || s.Status == 204 || s.Status == 304 || f.length == 0:
		s.state = stateDone
	case f.chunked:
		s.state = stateChunkSize
	case f.length > 0:
		s.left, s.state = f.length, stateFixed
	default:
		s.Close, s.state = true, stateUntilEOF
	}
	return nil
}

var (
	retryAfterName = []byte("retry-after")
	lengthName     = []byte("content-length")
	connectionName = []byte("connection")
	codingName     = []byte("transfer-encoding")
	chunkedValue   = []byte("chunked")
	closeToken     = []byte("close")
	keepAliveToken = []byte("keep-alive")
	listSeparator  = []byte(",")
)

// maxLengthDigits keeps a length within an int64.
const maxLengthDigits = 18

func (f *framing) read(name, value []byte) error {
	switch {
	case named(name, lengthName):
		n, ok := decimal(value)
		if !ok || f.length >= 0 && (f.length != n || f.digits != len(value)) {
			return malformed("bad Content-Length")
		}
		f.digits = len(value)
		f.length = n
	case named(name, codingName):
		if f.chunked || !bytes.EqualFold(value, chunkedValue) {
			return malformed("unknown Transfer-Encoding")
		}
		f.chunked = true
	case named(name, connectionName):
		for more := true; more; {
			var item []byte
			item, value, more = bytes.Cut(value, listSeparator)
			item = trim(item)
			f.closes = f.closes || bytes.EqualFold(item, closeToken)
			f.keepsAlive = f.keepsAlive || bytes.EqualFold(item, keepAliveToken)
		}
	}
	return nil
}

// named compares field names; most differ in length already.
func named(name, want []byte) bool { return len(name) == len(want) && bytes.EqualFold(name, want) }

// cutLine splits off a line that ends with CRLF. A CR within it is for field to refuse.
func cutLine(p []byte) (line, rest []byte, ok bool) {
	end := bytes.IndexByte(p, '\n')
	if end < 1 || p[end-1] != '\r' {
		return nil, nil, false
	}
	return p[:end-1], p[end+1:], true
}

// statusLine reads "HTTP/1.x NNN reason"; the reason may be missing, its space too.
func statusLine(line []byte) (minor, status int, ok bool) {
	if len(line) < 12 || !bytes.HasPrefix(line, version1) || line[8] != ' ' {
		return 0, 0, false
	}
	if len(line) > 12 && line[12] != ' ' {
		return 0, 0, false
	}
	minor = int(line[7]) - '0'
	n, digits := decimal(line[9:12])
	return minor, int(n), digits && text(line[12:]) && (minor == 0 || minor == 1) && n >= 100 && n <= 599
}

// field splits a field line. White space before the colon or at the start of the line is refused:
// it is how one reader's field becomes another's.
func field(line []byte) (name, value []byte, ok bool) {
	for i, c := range line {
		if tokenBytes[c] {
			continue
		}
		if c != ':' || i == 0 {
			return nil, nil, false
		}
		value = trim(line[i+1:])
		return line[:i], value, text(value)
	}
	return nil, nil, false
}

// trim cuts off spaces and tabs. bytes.Trim with a cutset costs as much as the rest of a line.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// text reports whether a field's value has no control character but the tab.
func text(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func decimal(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > maxLengthDigits {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// chunkSize reads the hexadecimal size before an extension. Whitespace between them is for receivers to take
// and for senders never to make (RFC 9112 section 7.1.1, BWS), and a load tester is here to notice.
func chunkSize(line []byte) (size int64, err error) {
	digits, extension, _ := bytes.Cut(line, []byte(";"))
	if bytes.IndexByte(extension, '\r') >= 0 {
		return 0, malformed("bare CR in a chunk's extension")
	}
	if len(digits) == 0 || len(digits) > 15 {
		return 0, malformed("bad chunk size")
	}
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, malformed("bad chunk size")
		}
		size = size<<4 | int64(c)
	}
	return size, nil
}
