package echo

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShort_TakesOnlyWhatTheFixedAnswerIsEnoughFor(t *testing.T) {
	for _, tc := range []struct {
		name, raw string
		all, last bool
	}{
		{"plain", "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n", true, false},
		{"behind a prefix, with fields of a proxy", "GET /a/echo?b HTTP/1.1\r\nhOST: h\r\nX-Forwarded-For: ::1\r\nVia: 1.1 x\r\nUser-Agent: \r\nTE: x\r\n\r\n", true, false},
		{"to be closed", "GET /echo HTTP/1.1\r\nHost: h\r\nCONNECTION:\t Close \r\n\r\n", true, true},
		{"the old version", "GET /echo HTTP/1.0\r\nHost: h\r\nConnection: close\r\n\r\n", true, true},
		{"the old version, without a word", "GET /echo HTTP/1.0\r\nHost: h\r\n\r\n", true, true},
		{"the old version, to be kept", "GET /echo HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", false, false},
		{"not whole", "GET /echo HTTP/1.1\r\nHost: h\r\n\r", false, false},
		{"nothing", "", false, false},
		{"another path", "GET /bytes/3 HTTP/1.1\r\nHost: h\r\n\r\n", false, false},
		{"another method", "HEAD /echo HTTP/1.1\r\nHost: h\r\n\r\n", false, false},
		{"another version", "GET /echo HTTP/1.2\r\nHost: h\r\n\r\n", false, false},
		{"a space in the target", "GET /x /echo HTTP/1.1\r\nHost: h\r\n\r\n", false, false},
		{"no host", "GET /echo HTTP/1.1\r\n\r\n", false, false},
		{"an empty host", "GET /echo HTTP/1.1\r\nHost:\r\n\r\n", false, false},
		{"a host that is none", "GET /echo HTTP/1.1\r\nHost: h/x?y#z\r\n\r\n", false, false},
		{"a host in brackets", "GET /echo HTTP/1.1\r\nHost: [::1]\r\n\r\n", false, false},
		{"a host with a port", "GET /echo HTTP/1.1\r\nHost: A-b.c_d:80\r\n\r\n", true, false},
		{"a target without a slash", "GET x/echo HTTP/1.1\r\nHost: h\r\n\r\n", false, false},
		{"a trailer to come", "GET /echo HTTP/1.1\r\nHost: h\r\nTrailer: x\r\n\r\n", false, false},
		{"two hosts", "GET /echo HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", false, false},
		{"a body", "GET /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", false, false},
		{"an empty body", "GET /echo HTTP/1.1\r\nHost: h\r\ncontent-length: 0\r\n\r\n", false, false},
		{"chunks", "GET /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, false},
		{"an expectation", "GET /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n", false, false},
		{"an upgrade", "GET /echo HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\n", false, false},
		{"an option of the connection", "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: upgrade, close\r\n\r\n", false, false},
		{"a space before a colon", "GET /echo HTTP/1.1\r\nHost : h\r\n\r\n", false, false},
		{"a folded field", "GET /echo HTTP/1.1\r\nHost: h\r\n x\r\n\r\n", false, false},
		{"no colon", "GET /echo HTTP/1.1\r\nHost: h\r\nx\r\n\r\n", false, false},
		{"a bare line feed", "GET /echo HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", false, false},
		{"a bare carriage return", "GET /echo HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", false, false},
		{"a NUL", "GET /echo HTTP/1.1\r\nHost: h\r\nX: \x00\r\n\r\n", false, false},
		{"an empty line first", "\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n", false, false},
	} {
		n, last := short([]byte(tc.raw + "GET /next"))
		if !tc.all {
			require.Zero(t, n, tc.name)
			continue
		}
		require.Equal(t, len(tc.raw), n, tc.name)
		require.Equal(t, tc.last, last, tc.name)
	}
}

func TestShort_AllocatesNothing(t *testing.T) {
	raw := []byte("GET /svc-a/echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n")
	require.Zero(t, testing.AllocsPerRun(100, func() { short(raw) }))
}

// What is short is a request to the standard library too, as long, without a body, and for /echo.
func FuzzShort(f *testing.F) {
	f.Add([]byte("GET /echo HTTP/1.1\r\nHost: h\r\n\r\nGET /"))
	f.Add([]byte("GET /a/echo?x HTTP/1.0\r\nhost:h\r\nConnection: close\r\nVia: 1.1 a\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, last := short(b)
		if n == 0 {
			require.False(t, last)
			return
		}
		r := bufio.NewReader(bytes.NewReader(b[:n]))
		request, err := http.ReadRequest(r)
		if err != nil && strings.Contains(err.Error(), "parse ") {
			return // the library also decodes the target
		}
		require.NoError(t, err)
		require.Zero(t, r.Buffered())
		require.Equal(t, "GET", request.Method)
		require.Zero(t, request.ContentLength)
		require.Empty(t, request.TransferEncoding)
		require.Equal(t, last, request.Close)
		path, _, _ := strings.Cut(request.RequestURI, "?")
		require.True(t, strings.HasSuffix(path, "/echo"))
		for cut := range n {
			got, _ := short(b[:cut])
			require.Zero(t, got, "a part is not short")
		}
	})
}
