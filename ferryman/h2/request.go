package h2

import (
	"strings"

	"golang.org/x/net/http2/hpack"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// AppendRequest appends a request's head in the form of HTTP/1.1, for its codec, and counts the field lines. It is
// false where the pseudo-fields or a name are malformed (RFC 9113 sections 8.2 and 8.3): the codec cannot see that.
func AppendRequest(dst []byte, list []hpack.HeaderField) (head []byte, lines int, ok bool) {
	b, fields, pseudo, ok := startLine(dst, list)
	cookies := 0
	for i := 0; ok && i < len(fields); i++ {
		switch f := &fields[i]; {
		case !ValidName(f.Name), !bareValue(f.Value):
			return b, 0, false
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
	return append(b, "\r\n"...), lines, ok
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
