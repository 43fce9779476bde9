package conformance

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The strict reader of HTTP/1.1 messages that both ends of the rig use. It shares nothing with the
// parser under test: it takes lines apart with the strings package and refuses whatever RFC 9112
// does not allow a sender to generate, so that a sloppy byte out of ferryman is an error here.

// errSyntax is what every violation wraps. A cut message is io.ErrUnexpectedEOF instead.
var errSyntax = errors.New("not HTTP/1.1")

// field is one field line. line is the line as it came, without its end.
type field struct{ name, value, line string }

// message is a request or a response.
type message struct {
	line                  string // start line
	method, target, proto string
	status                int
	reason                string
	fields                []field
	framing               string // none, length, chunked, close
	length                int64  // of a body with framing length
	body                  []byte // at most keepBody bytes
	bodyLen               int64
	sum                   [32]byte
	chunks                int
	trailers              []field
	interim               []*message // 1xx responses that came before a final one
	conn, index           int        // upstream side: connection id and index of the request on it
	up                    string     // upstream side: name of the upstream
	complete              bool
}

const keepBody = 1 << 20

func (m *message) values(name string) []string {
	var v []string
	for _, f := range m.fields {
		if strings.EqualFold(f.name, name) {
			v = append(v, f.value)
		}
	}
	return v
}

func (m *message) get(name string) string {
	if v := m.values(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

func (m *message) has(name string) bool { return len(m.values(name)) > 0 }

func (m *message) lines() []string {
	var l []string
	for _, f := range m.fields {
		l = append(l, f.line)
	}
	return l
}

type wireReader struct {
	br *bufio.Reader
	// lenientExtensions lets chunk extensions pass; ferryman never writes one.
	lenientExtensions bool
}

func newWireReader(r io.Reader) *wireReader { return &wireReader{br: bufio.NewReaderSize(r, 16<<10)} }

// line reads one CRLF-terminated line. Nothing at all is io.EOF, a part of a line is ErrUnexpectedEOF.
func (w *wireReader) readLine() (string, error) {
	s, err := w.br.ReadString('\n')
	if err != nil {
		if err == io.EOF && s != "" {
			return s, io.ErrUnexpectedEOF
		}
		return s, err
	}
	if !strings.HasSuffix(s, "\r\n") {
		return s, fmt.Errorf("%w: bare LF in %q", errSyntax, clip(s))
	}
	s = s[:len(s)-2]
	if i := strings.IndexAny(s, "\r\x00"); i >= 0 {
		return s, fmt.Errorf("%w: CR or NUL in %q", errSyntax, clip(s))
	}
	return s, nil
}

func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

const tokenPunctuation = "!#$%&'*+-.^_`|~"

func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte(tokenPunctuation, c) >= 0
}

func (w *wireReader) readFields() ([]field, error) {
	var fs []field
	for {
		s, err := w.readLine()
		if err != nil {
			return fs, cut(err)
		}
		if s == "" {
			return fs, nil
		}
		name, value, ok := strings.Cut(s, ":")
		if !ok || !isToken(name) {
			return fs, fmt.Errorf("%w: field line %q", errSyntax, clip(s))
		}
		value = strings.Trim(value, " \t")
		for i := 0; i < len(value); i++ {
			if c := value[i]; c < 0x20 && c != '\t' || c == 0x7f {
				return fs, fmt.Errorf("%w: control character in %q", errSyntax, clip(s))
			}
		}
		fs = append(fs, field{name, value, s})
	}
}

// requestHead reads a request line and fields.
func (w *wireReader) requestHead() (*message, error) {
	s, err := w.readLine()
	if err != nil {
		return nil, err
	}
	m := &message{line: s}
	p := strings.Split(s, " ")
	if len(p) != 3 || !isToken(p[0]) || p[1] == "" {
		return m, fmt.Errorf("%w: request line %q", errSyntax, clip(s))
	}
	m.method, m.target, m.proto = p[0], p[1], p[2]
	if m.proto != "HTTP/1.1" {
		return m, fmt.Errorf("%w: version in %q", errSyntax, clip(s))
	}
	if m.fields, err = w.readFields(); err != nil {
		return m, err
	}
	return m, m.frame(false, "")
}

// responseHead reads one status line and fields, interim ones included.
func (w *wireReader) responseHead(method string) (*message, error) {
	s, err := w.readLine()
	if err != nil {
		return nil, err
	}
	m := &message{line: s}
	if len(s) < 13 || s[:9] != "HTTP/1.1 " || s[12] != ' ' {
		return m, fmt.Errorf("%w: status line %q", errSyntax, clip(s))
	}
	m.proto, m.reason = s[:8], s[13:]
	if m.status, err = strconv.Atoi(s[9:12]); err != nil || m.status < 100 {
		return m, fmt.Errorf("%w: status in %q", errSyntax, clip(s))
	}
	if m.fields, err = w.readFields(); err != nil {
		return m, err
	}
	return m, m.frame(true, method)
}

// frame decides how the body is delimited.
func (m *message) frame(response bool, method string) error {
	te, cl := m.values("Transfer-Encoding"), m.values("Content-Length")
	switch {
	case len(te)+len(cl) > 1:
		return fmt.Errorf("%w: framing given twice: %q %q", errSyntax, te, cl)
	case len(te) == 1 && !strings.EqualFold(te[0], "chunked"):
		return fmt.Errorf("%w: transfer coding %q", errSyntax, te[0])
	case len(cl) == 1:
		if len(cl[0]) > 19 || strings.Trim(cl[0], "0123456789") != "" || cl[0] == "" {
			return fmt.Errorf("%w: length %q", errSyntax, cl[0])
		}
		m.length, _ = strconv.ParseInt(cl[0], 10, 64)
	}
	bodiless := response && (method == "HEAD" || m.status < 200 || m.status == 204 || m.status == 304)
	if m.status != 0 && (m.status < 200 || m.status == 204) && len(te)+len(cl) > 0 {
		return fmt.Errorf("%w: a %d with framing", errSyntax, m.status)
	}
	switch {
	case bodiless:
		m.framing = "none"
	case len(te) == 1:
		m.framing = "chunked"
	case len(cl) == 1:
		m.framing = "length"
	case response:
		m.framing = "close"
	default:
		m.framing = "none"
	}
	return nil
}

// readBody reads what belongs to m. What arrived before an error stays in m.
func (w *wireReader) readBody(m *message) error {
	h := sha256.New()
	sink := writerFunc(func(p []byte) (int, error) {
		h.Write(p)
		m.bodyLen += int64(len(p))
		if room := keepBody - len(m.body); room > 0 {
			m.body = append(m.body, p[:min(room, len(p))]...)
		}
		return len(p), nil
	})
	defer func() { copy(m.sum[:], h.Sum(nil)) }()
	var err error
	switch m.framing {
	case "length":
		_, err = io.CopyN(sink, w.br, m.length)
		err = cut(err)
	case "chunked":
		err = w.readChunks(m, sink)
	case "close":
		_, err = io.Copy(sink, w.br)
	}
	m.complete = err == nil
	return err
}

func (w *wireReader) readChunks(m *message, sink io.Writer) error {
	for {
		s, err := w.readLine()
		if err != nil {
			return cut(err)
		}
		if i := strings.IndexByte(s, ';'); i >= 0 && w.lenientExtensions {
			s = strings.TrimRight(s[:i], " \t")
		}
		if s == "" || len(s) > 16 || strings.Trim(s, "0123456789abcdefABCDEF") != "" {
			return fmt.Errorf("%w: chunk size %q", errSyntax, clip(s))
		}
		n, err := strconv.ParseUint(s, 16, 63)
		if err != nil {
			return fmt.Errorf("%w: chunk size %q", errSyntax, s)
		}
		if n == 0 {
			m.trailers, err = w.readFields()
			return err
		}
		m.chunks++
		if _, err = io.CopyN(sink, w.br, int64(n)); err != nil {
			return cut(err)
		}
		if s, err = w.readLine(); err != nil {
			return cut(err)
		}
		if s != "" {
			return fmt.Errorf("%w: data past a chunk's end: %q", errSyntax, clip(s))
		}
	}
}

// response reads a whole response to a request of the given method, interim ones included.
func (w *wireReader) response(method string) (*message, error) {
	var interim []*message
	for {
		m, err := w.responseHead(method)
		if err != nil {
			return m, err
		}
		if m.status < 200 && m.status != 101 {
			interim = append(interim, m)
			continue
		}
		m.interim = interim
		return m, w.readBody(m)
	}
}

// request reads a whole request.
func (w *wireReader) request() (*message, error) {
	m, err := w.requestHead()
	if err != nil {
		return m, err
	}
	return m, cut(w.readBody(m))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
