package ferryman

import (
	"errors"
	"io"
	"strings"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
)

// parse checks what HTTP/2 alone asks of a request (RFC 9113 sections 8.2 and 8.3), and has the codec of
// HTTP/1.1 read the rest: one place decides what a request is. A fault without a status is a malformed head.
func (s *streamH2) parse() *fault {
	if s.fields.TooLarge {
		return syntaxFaults[431]
	}
	lines, ok := s.rewrite()
	if !ok {
		return s.malformed()
	}
	s.req.Reset()
	n, err := s.req.Parse(s.raw)
	if err == nil && n == len(s.raw) && len(s.req.Fields) == lines {
		if !s.large() { // or else they make the head again
			s.forgetFields()
		}
		return nil
	}
	var syntax *h1.Error
	if errors.As(err, &syntax) && syntax.Status != 400 {
		return syntaxFault(syntax)
	}
	return s.malformed()
}

var faultMalformedH2 = &fault{}

func (s *streamH2) malformed() *fault {
	s.code = http2.ErrCodeProtocol
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.waste(1)
	return faultMalformedH2
}

// appendHead reads the fields once more where the head was stowed.
func (s *streamH2) appendHead(dst []byte, e *exchange) []byte {
	if s.raw == nil {
		s.parse()
	}
	if s.large() {
		dst = borrowHead()
	}
	dst = s.origin.appendHead(dst, e)
	if s.large() {
		returnHead(s.raw)
		s.raw, e.ask.path = nil, nil
		s.req.Reset()
	}
	return dst
}

// stow gives back a large head: a few bytes of the client's may have made it.
func (s *streamH2) stow(e *exchange) {
	if s.large() {
		returnHead(e.head)
		e.head = nil
	}
	s.started()
}

// large reports a head that is not kept while the stream waits.
func (s *streamH2) large() bool { return s.fields.Size > maxScratch }

// largeHead is more than the largest head in the form of HTTP/1.1 that is forwarded.
const largeHead = 80 << 10

var largeHeads = sync.Pool{New: func() any { return new([largeHead]byte) }}

func borrowHead() []byte { return largeHeads.Get().(*[largeHead]byte)[:0] }

// returnHead takes a large head back, unless it has outgrown its buffer.
func returnHead(b []byte) {
	if cap(b) == largeHead {
		largeHeads.Put((*[largeHead]byte)(b[:largeHead]))
	}
}

// rewrite puts the head into the form of HTTP/1.1, for the codec, and counts its field lines.
func (s *streamH2) rewrite() (lines int, ok bool) {
	if s.large() {
		s.raw = borrowHead()
	}
	b, fields, pseudo, ok := startLine(s.raw[:0], s.fields.List)
	cookies := 0
	for i := 0; ok && i < len(fields); i++ {
		switch f := &fields[i]; {
		case !h2.ValidName(f.Name), !bareValue(f.Value):
			return 0, false
		case f.Name == "host":
			if pseudo.authority == "" {
				pseudo.authority = f.Value
			}
			ok = pseudo.names(f.Value)
		case f.Name == "cookie":
			cookies++
		default:
			b = h1.AppendField(b, f.Name, f.Value)
			lines++
		}
	}
	b = h1.AppendField(b, "Host", pseudo.authority)
	lines++
	if cookies > 0 {
		b = appendCookies(b, fields)
		lines++
	}
	s.raw = append(b, "\r\n"...)
	return lines, ok
}

// startLine makes the request line out of the pseudo-fields, and returns the other fields and what
// :authority says.
func startLine(dst []byte, fields []hpack.HeaderField) (line []byte, rest []hpack.HeaderField, p pseudoFields, ok bool) {
	for ; len(fields) > 0 && strings.HasPrefix(fields[0].Name, ":"); fields = fields[1:] {
		if !p.take(&fields[0]) {
			return dst, nil, p, false
		}
	}
	target := p.path
	switch {
	case p.method == "CONNECT":
		ok = p.scheme == "" && target == ""
		target = p.authority
	case strings.EqualFold(p.scheme, "http"), strings.EqualFold(p.scheme, "https"):
		ok = strings.HasPrefix(target, "/") || target == "*"
	}
	dst = append(append(dst, p.method...), ' ')
	return append(append(dst, target...), " HTTP/1.1\r\n"...), fields, p, ok
}

// pseudoFields are those of a request (RFC 9113 section 8.3.1). None may be empty.
type pseudoFields struct{ method, scheme, path, authority string }

// take returns false for a field that may not be there: again, empty, or :protocol, which was not offered
// (RFC 8441).
func (p *pseudoFields) take(f *hpack.HeaderField) bool {
	var to *string
	switch f.Name {
	case ":method":
		to = &p.method
	case ":scheme":
		to = &p.scheme
	case ":path":
		to = &p.path
	case ":authority":
		to = &p.authority
	default:
		return false
	}
	if *to != "" || f.Value == "" {
		return false
	}
	*to = f.Value
	return true
}

// names reports whether a Host field says the same as :authority, a default port aside.
func (p *pseudoFields) names(host string) bool {
	port := ":80"
	if strings.EqualFold(p.scheme, "https") {
		port = ":443"
	}
	return strings.EqualFold(strings.TrimSuffix(host, port), strings.TrimSuffix(p.authority, port))
}

// bareValue reports a value without blanks around it, which the codec would take off.
func bareValue(v string) bool {
	return v == "" || v[0] != ' ' && v[0] != '\t' && v[len(v)-1] != ' ' && v[len(v)-1] != '\t'
}

// appendCookies makes one line of the crumbs (RFC 9113 section 8.2.3).
func appendCookies(dst []byte, fields []hpack.HeaderField) []byte {
	between := "Cookie: "
	for i := range fields {
		if fields[i].Name == "cookie" {
			dst = append(append(dst, between...), fields[i].Value...)
			between = "; "
		}
	}
	return append(dst, "\r\n"...)
}

// understand tells the exchange what is asked.
func (s *streamH2) understand() *fault {
	r := &s.req
	expect := false
	for i := range r.Fields {
		f := &r.Fields[i]
		switch value := r.ValueOf(f); f.Kind {
		case h1.Connection, h1.TransferEncoding, h1.Upgrade:
			return s.malformed()
		case h1.KeepAlive:
			if string(r.Name(f)) != "http2-settings" { // which means nothing here (RFC 9113 section 3.1)
				return s.malformed()
			}
		case h1.TE:
			if !strings.EqualFold(string(value), "trailers") {
				return s.malformed()
			}
		case h1.Expect:
			expect = true
		}
	}
	bodiless := s.empty()
	if !bodiless && r.DeclaredLength() == 0 { // the upstream would take the head alone for the whole
		s.started()
		if _, err := s.Read(nil); err != io.EOF {
			return s.malformed()
		}
		bodiless = true
	}
	s.e.ask = ask{
		path: r.Path(), idempotent: r.Idempotent(), bodiless: bodiless, empty: bodiless && r.ExpectsBody(),
		chunked: !bodiless && r.DeclaredLength() < 0, expect: expect && !bodiless, connect: r.Connect,
		head: r.HeadMethod, hops: r.Hops, lastHop: r.MaxForwards == 0,
	}
	return nil
}
