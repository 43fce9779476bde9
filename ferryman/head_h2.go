package ferryman

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// readHead checks what HTTP/2 alone asks of a request (RFC 9113 sections 8.2 and 8.3), and has the
// codec of HTTP/1.1 read the rest: one place decides what a request is. A fault without a status is
// a malformed head.
func (s *streamH2) readHead() *fault {
	if s.cropped {
		return syntaxFaults[431]
	}
	lines, ok := s.rewrite()
	if !ok {
		return s.malformed()
	}
	s.req.Reset()
	n, err := s.req.Parse(s.raw)
	if err == nil && n == len(s.raw) && len(s.req.Fields) == lines {
		return s.understand()
	}
	var syntax *h1.Error
	if errors.As(err, &syntax) && syntax.Status != 400 {
		return syntaxFault(syntax)
	}
	return s.malformed()
}

func (s *streamH2) malformed() *fault {
	s.code = http2.ErrCodeProtocol
	return &fault{}
}

// rewrite puts the head into the form of HTTP/1.1, for the codec, and counts its field lines.
func (s *streamH2) rewrite() (lines int, ok bool) {
	b, fields, host, ok := startLine(s.raw[:0], s.fields)
	cookies := 0
	for i := 0; ok && i < len(fields); i++ {
		switch f := &fields[i]; {
		case !bareValue(f.Value):
			return 0, false
		case f.Name == "host":
			if host == "" {
				host = f.Value
			}
			ok = strings.EqualFold(f.Value, host)
		case f.Name == "cookie":
			cookies++
		default:
			b = h1.AppendField(b, f.Name, f.Value)
			lines++
		}
	}
	b = h1.AppendField(b, "Host", host)
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
func startLine(dst []byte, fields []hpack.HeaderField) (line []byte, rest []hpack.HeaderField, host string, ok bool) {
	var method, scheme, target string
	for ; len(fields) > 0 && strings.HasPrefix(fields[0].Name, ":"); fields = fields[1:] {
		switch f := &fields[0]; f.Name {
		case ":method":
			method = f.Value
		case ":scheme":
			scheme = f.Value
		case ":path":
			target = f.Value
		case ":authority":
			if host = f.Value; host == "" {
				return dst, nil, "", false
			}
		default: // :protocol was not offered (RFC 8441)
			return dst, nil, "", false
		}
	}
	switch {
	case method == "CONNECT":
		ok = scheme == "" && target == ""
		target = host
	case scheme == "http", scheme == "https":
		ok = strings.HasPrefix(target, "/") || target == "*"
	}
	dst = append(append(dst, method...), ' ')
	return append(append(dst, target...), " HTTP/1.1\r\n"...), fields, host, ok
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
		switch f := &r.Fields[i]; f.Kind {
		case h1.Connection, h1.KeepAlive, h1.TransferEncoding, h1.Upgrade:
			return s.malformed()
		case h1.TE:
			if string(r.ValueOf(f)) != "trailers" {
				return s.malformed()
			}
		case h1.Expect:
			expect = true
		}
	}
	bodiless := s.bare
	if !bodiless && r.DeclaredLength() == 0 { // the upstream would take the head alone for the whole
		if _, err := s.Read(nil); err != io.EOF {
			return s.malformed()
		}
		bodiless = true
	}
	s.e.ask = ask{
		path: r.Path(), idempotent: r.Idempotent(), bodiless: bodiless,
		chunked: !bodiless && r.DeclaredLength() < 0, expect: expect && !bodiless, connect: r.Connect,
		head: r.HeadMethod, hops: r.Hops, lastHop: r.MaxForwards == 0,
	}
	return nil
}
