package wire

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Request describes a request. Its zero value lacks only the URL.
type Request struct {
	Method  string   // "" means GET, or POST if there is a body
	URL     string   // http://host[:port]/target or https://; the target is sent byte for byte
	Headers []string // "Name: value" each; Host replaces the one of the URL
	Body    []byte   // nil or empty: none
	Close   bool     // ask for the end of the connection after the answer
}

// URL is a request's URL taken apart.
type URL struct {
	TLS    bool
	Host   string // host:port to dial
	Name   string // host as it stands in the Host field
	Target string // path and query as they stand in the request line; at least "/"
}

// ParseURL takes a URL apart without decoding or cleaning its path.
func ParseURL(text string) (URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || (scheme != "http" && scheme != "https") {
		return URL{}, fmt.Errorf("%q is no http:// or https:// URL", text)
	}
	for _, c := range []byte(rest) {
		if c <= ' ' || c >= 0x7f {
			return URL{}, fmt.Errorf("%q holds a byte that cannot stand in a URL: percent-encode it", text)
		}
	}
	rest, _, _ = strings.Cut(rest, "#")
	u := URL{TLS: scheme == "https", Name: rest, Target: "/"}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		u.Name, u.Target = rest[:i], rest[i:]
	}
	if strings.HasPrefix(u.Target, "?") {
		u.Target = "/" + u.Target
	}
	if u.Name == "" || strings.Contains(u.Name, "@") {
		return URL{}, fmt.Errorf("%q: the part before the path must be host or host:port", text)
	}
	host, port := u.Name, "80"
	if u.TLS {
		port = "443"
	}
	if h, p, err := net.SplitHostPort(u.Name); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 || h == "" {
			return URL{}, fmt.Errorf("%q: %q is no host with a port from 1 to 65535", text, u.Name)
		}
		host, port = h, p
	} else if strings.Contains(strings.Trim(host, "[]"), ":") && !strings.HasPrefix(host, "[") {
		return URL{}, fmt.Errorf("%q: an IPv6 address needs brackets", text)
	}
	u.Host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	return u, nil
}

// Verb is the method that the request is sent with.
func (r Request) Verb() string {
	switch {
	case r.Method != "":
		return r.Method
	case len(r.Body) > 0:
		return "POST"
	}
	return "GET"
}

// Bytes is the whole request as it goes over an HTTP/1.1 connection.
func (r Request) Bytes() ([]byte, error) {
	u, err := ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	if !token(r.Verb()) {
		return nil, fmt.Errorf("%q is no method", r.Verb())
	}
	fields, host, err := r.Fields()
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = u.Name
	}
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Verb(), u.Target, host)
	for _, f := range fields {
		b = fmt.Appendf(b, "%s: %s\r\n", f[0], f[1])
	}
	if r.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	if len(r.Body) > 0 || r.Verb() == "POST" || r.Verb() == "PUT" {
		b = fmt.Appendf(b, "Content-Length: %d\r\n", len(r.Body))
	}
	b = append(b, "\r\n"...)
	return append(b, r.Body...), nil
}

// Fields are the headers as name and value. Host comes apart; it is "" where none is given.
func (r Request) Fields() (fields [][2]string, host string, err error) {
	for _, line := range r.Headers {
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !token(name) {
			return nil, "", fmt.Errorf("header %q: write it as \"Name: value\"", line)
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, "", fmt.Errorf("header %q: a value is one line", line)
		}
		switch strings.ToLower(name) {
		case "host":
			host = value
		case "content-length", "transfer-encoding", "connection":
			return nil, "", errors.New("header " + name + " is set by the generator: it follows from the body and the mode")
		default:
			fields = append(fields, [2]string{name, value})
		}
	}
	return fields, host, nil
}

// token reports whether s is an RFC 9110 token: a method or a field name.
func token(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}
