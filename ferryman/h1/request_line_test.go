package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const (
	badMethod  = "malformed method"
	badTarget  = "malformed request target"
	badVersion = "malformed protocol version"
	bareLF     = "bare LF"
)

// Numbers are those of the conformance cases.

func TestRequest_ReadsItsParts(t *testing.T) { // 1
	r := request(t, "GET /a/b?c=d?e HTTP/1.1\r\nHost: a:80\r\n\r\n")
	require.Equal(t, "GET", string(r.Method()))
	require.Equal(t, "/a/b", string(r.Path()))
	require.Equal(t, "/a/b?c=d?e", string(r.AppendTarget(nil, 0)))
	require.Equal(t, "/b?c=d?e", string(r.AppendTarget(nil, len("/a"))))
	require.Equal(t, "a:80", string(r.Host()))
	require.True(t, r.Bodiless)
	require.False(t, r.Close())
	accepts(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
}

func TestRequest_StopsWhereItsHeadEnds(t *testing.T) {
	const head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, behind := range []string{"", "x", "\r\n", "\n", head, "\x00\xff"} {
		require.Equal(t, len(head), accepts(t, head+behind).Used)
	}
}

func TestRequest_EmptyLinesAreNoPartOfItsHead(t *testing.T) { // 2
	const rest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, n := range []int{1, 2, 10_000} {
		refuses(t, 400, "empty line before the request line", strings.Repeat("\r\n", n)+rest)
	}
	refuses(t, 400, bareLF, "\n"+rest)
	refuses(t, 400, badMethod, "\r"+rest)
	refuses(t, 400, badMethod, "\r\r\n"+rest)
}

func TestRequest_BlanksInTheStartLine(t *testing.T) { // 3, 4
	for line, cause := range map[string]string{
		"GET  / HTTP/1.1":     badTarget,
		"GET /  HTTP/1.1":     badVersion,
		"GET\t/\tHTTP/1.1":    badMethod,
		"GET /\tHTTP/1.1":     badTarget,
		"GET\t/ HTTP/1.1":     badMethod,
		"GET / a HTTP/1.1":    badVersion,
		"GET /a b HTTP/1.1":   badVersion,
		" GET / HTTP/1.1":     badMethod,
		"GET / HTTP/1.1 ":     badVersion,
		"GET /\x0bHTTP/1.1":   badTarget,
		"GET\u00a0/ HTTP/1.1": badMethod,
	} {
		refuses(t, 400, cause, line+"\r\nHost: a\r\n\r\n")
	}
}

func TestRequest_Versions(t *testing.T) { // 5, 6, 7
	for _, v := range []string{"HTTP/1.1", "HTTP/1.2", "HTTP/1.9"} {
		accepts(t, "GET / "+v+"\r\nHost: a\r\n\r\n")
		require.False(t, request(t, "GET / "+v+"\r\nHost: a\r\n\r\n").Old(), v)
	}
	require.True(t, request(t, "GET / HTTP/1.0\r\n\r\n").Old())
	for _, v := range []string{"HTTP/0.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"} {
		refuses(t, 505, "unsupported protocol version", "GET / "+v+"\r\nHost: a\r\n\r\n")
	}
	for _, v := range []string{"HTTP/1.", "HTTP/1", "HTTP/01.1", "HTTP/1.10", "HTTP/4294967295.255",
		"HTTP/\r\r1.1", "http/1.1", "Http/1.1", "HTTP /1.1", "HTTPS/1.1", "HTTP/1.1 ", "HTTP/1.1x", "HTTP/1,1",
		"HTTP/1.x", "HTTP/x.1", "HTTP/1.\xb9", "HTTP/.1.1", "HTTP-1.1", "XTTP/1.1", "HTTP/1.1\r", "HTTP/1.1\x00", "", "1.1"} {
		refuses(t, 400, badVersion, "GET / "+v+"\r\nHost: a\r\n\r\n")
	}
	refuses(t, 400, badVersion, "GET /\r\n\r\n")
	refuses(t, 400, badVersion, "GET /\r\nHost: a\r\n\r\n")
	refuses(t, 400, badVersion, "GET\r\n\r\n")
	for _, target := range []string{"*", "/"} {
		refuses(t, 505, "unsupported protocol version", "PRI "+target+" HTTP/2.0\r\n\r\nSM\r\n\r\n")
	}
	refuses(t, 400, "malformed method", "PRI * HTTP/1.1\r\nHost: a\r\n\r\n")
	refuses(t, 400, "malformed method", "PRI / HTTP/1.1\r\nHost: a\r\n\r\n")
}

func TestRequest_EveryByteInAMethod(t *testing.T) { // 8
	for c := range 256 {
		input := fmt.Sprintf("G%cT / HTTP/1.1\r\nHost: a\r\n\r\n", 0)
		input = strings.Replace(input, "\x00", string([]byte{byte(c)}), 1)
		switch {
		case strings.IndexByte(tokenBytes, byte(c)) >= 0:
			accepts(t, input)
		case c == '\n':
			refuses(t, 400, bareLF, input)
		case c == ' ': // T is the target then
			refuses(t, 400, badVersion, input)
		default:
			refuses(t, 400, badMethod, input)
		}
	}
	for _, m := range []string{"PURGE", "M-SEARCH", "a!#$%&'*+-.^_`|~", "get", "0"} {
		r := request(t, m+" / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, m, string(r.Method()))
	}
	require.False(t, request(t, "head / HTTP/1.1\r\nHost: a\r\n\r\n").HeadMethod, "methods are case-sensitive")
	for _, m := range []string{"", "=\":<>", "GET:", "G(ET", "GE\x00T"} {
		refuses(t, 400, badMethod, m+" / HTTP/1.1\r\nHost: a\r\n\r\n")
	}
}

// tokenBytes are the tchar of RFC 9110 section 5.6.2, spelled out.
const tokenBytes = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func TestRequest_MethodLength(t *testing.T) { // 9
	for _, n := range []int{1, 32, h1.MaxMethod} {
		accepts(t, strings.Repeat("M", n)+" / HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	for _, n := range []int{h1.MaxMethod + 1, 32 << 10} {
		refuses(t, 400, badMethod, strings.Repeat("M", n)+" / HTTP/1.1\r\nHost: a\r\n\r\n")
	}
}

func TestRequest_Idempotent(t *testing.T) {
	for m, want := range map[string]bool{"GET": true, "HEAD": true, "PUT": true, "DELETE": true, "OPTIONS": true,
		"TRACE": true, "POST": false, "PATCH": false, "PURGE": false, "get": false} {
		require.Equal(t, want, request(t, m+" / HTTP/1.1\r\nHost: a\r\n\r\n").Idempotent(), m)
	}
}
