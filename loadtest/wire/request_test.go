package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequest_SendsTheTargetByteForByte(t *testing.T) {
	for _, tc := range []struct {
		name string
		r    Request
		want string
	}{
		{"bare", Request{URL: "http://h"}, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"raw path", Request{URL: "HTTP://h:81/a%2Fb/../c?q=1&r=%20#frag"}, "GET /a%2Fb/../c?q=1&r=%20 HTTP/1.1\r\nHost: h:81\r\n\r\n"},
		{"query only", Request{URL: "http://h?x"}, "GET /?x HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"fields", Request{URL: "http://h/", Headers: []string{"X-A: 1", "host: other", "x-b:2 "}}, "GET / HTTP/1.1\r\nHost: other\r\nX-A: 1\r\nx-b: 2\r\n\r\n"},
		{"body", Request{URL: "http://h/", Body: []byte("abc")}, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"},
		{"empty put", Request{URL: "http://h/", Method: "PUT", Close: true}, "PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"ipv6", Request{URL: "http://[::1]:8080/x"}, "GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := tc.r.Bytes()
			require.NoError(t, err)
			require.Equal(t, tc.want, string(b))
		})
	}
}

func TestParseURL_KnowsWhereToDial(t *testing.T) {
	for text, want := range map[string]string{
		"http://h/x": "h:80", "https://h/x": "h:443", "http://h:8080": "h:8080", "http://[::1]/": "[::1]:80", "https://[::1]:9/": "[::1]:9",
	} {
		u, err := ParseURL(text)
		require.NoError(t, err, text)
		require.Equal(t, want, u.Host)
	}
}

func TestRequest_SaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		r    Request
		want string
	}{
		{Request{URL: "h:80/x"}, "no http:// or https:// URL"}, {Request{URL: "ftp://h"}, "no http://"}, {Request{URL: "http:///x"}, "host or host:port"},
		{Request{URL: "http://u:p@h/"}, "host or host:port"}, {Request{URL: "http://h/a b"}, "percent-encode"}, {Request{URL: "http://h:x/"}, "port from 1"},
		{Request{URL: "http://h:0/"}, "port from 1"}, {Request{URL: "http://::1/"}, "brackets"}, {Request{URL: "http://h", Method: "GE T"}, "no method"},
		{Request{URL: "http://h", Headers: []string{"nope"}}, "Name: value"}, {Request{URL: "http://h", Headers: []string{"a b: c"}}, "Name: value"},
		{Request{URL: "http://h", Headers: []string{"a: b\r\nc: d"}}, "one line"}, {Request{URL: "http://h", Headers: []string{"Content-Length: 3"}}, "set by the generator"},
	} {
		_, err := tc.r.Bytes()
		require.ErrorContains(t, err, tc.want, "%+v", tc.r)
	}
}
