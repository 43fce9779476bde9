package h2

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
)

func fields(pairs ...string) (list []hpack.HeaderField) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

func TestAppendRequest_IsTheSameHeadInHTTP11(t *testing.T) {
	for _, row := range []struct {
		name  string
		list  []hpack.HeaderField
		want  string
		lines int
	}{
		{"the least", fields(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "a"),
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
		{"Host in place of :authority", fields(":method", "GET", ":scheme", "http", ":path", "/x", "host", "b", "accept", "*/*"),
			"GET /x HTTP/1.1\r\naccept: */*\r\nHost: b\r\n\r\n", 2},
		{"both, but for the default port", fields(":method", "GET", ":scheme", "https", ":path", "/", ":authority", "a", "host", "A:443"),
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
		{"crumbs of a cookie", fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a", "cookie", "x=1", "te", "trailers", "cookie", "y=2"),
			"GET / HTTP/1.1\r\nte: trailers\r\nHost: a\r\nCookie: x=1; y=2\r\n\r\n", 3},
		{"CONNECT", fields(":method", "CONNECT", ":authority", "a:443"), "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 1},
		{"OPTIONS of the server", fields(":method", "OPTIONS", ":scheme", "http", ":path", "*", ":authority", "a"),
			"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			head, lines, ok := AppendRequest([]byte("before "), row.list)
			require.True(t, ok)
			require.Equal(t, "before "+row.want, string(head))
			require.Equal(t, row.lines, lines)
		})
	}
}

func TestAppendRequest_RefusesWhatTheCodecCannotSee(t *testing.T) {
	for name, list := range map[string][]hpack.HeaderField{
		"no path":                  fields(":method", "GET", ":scheme", "http", ":authority", "a"),
		"no scheme":                fields(":method", "GET", ":path", "/", ":authority", "a"),
		"another scheme":           fields(":method", "GET", ":scheme", "ftp", ":path", "/", ":authority", "a"),
		"a path without its slash": fields(":method", "GET", ":scheme", "http", ":path", "a", ":authority", "a"),
		"a pseudo-field twice":     fields(":method", "GET", ":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a"),
		"an unknown pseudo-field":  fields(":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/", ":authority", "a"),
		"CONNECT with a path":      fields(":method", "CONNECT", ":path", "/", ":authority", "a:443"),
		"a pseudo-field behind":    fields(":method", "GET", ":scheme", "http", ":path", "/", "x", "y", ":authority", "a"),
		"capitals":                 fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a", "X", "y"),
		"blanks around a value":    fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a", "x", " y"),
		"another host":             fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a", "host", "b"),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, ok := AppendRequest(nil, list)
			require.False(t, ok)
		})
	}
}
