package h1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

var goodHosts = []string{"a", "A", "a:8080", "a.", "a.:80", "a.b.c", "[::1]", "[::1]:80", "[::ffff:1.2.3.4]:80", "a_b",
	"xn--e1afmkfd", "1.2.3.4", "a-b~c", "Example.COM:8443", "a:0", "a:65535", "0", "-", strings.Repeat("a", 300)}

var badHosts = []string{"a b", "a\tb", "a/b", "a?b", "a#b", "a@b", "u:p@a", "a:", "a:abc", "a:1:2", "a:99999",
	"a:65536", "a:000080", "a:+80", "a:-1", "a:8 0", "[::1", "::1", "[::1]x", "[::1]:80x", "[::1]:", "[]", "[", "]",
	"[a]", "[1.2.3.4]", "[::1%25eth0]", "[fe80::1%eth0]", "[::g]", "[v1.x]", "[::1]]", "[[::1]]", ".", "..a", ".a",
	"a..b", "a..", "a,b", "a, b", "a\x02", "a\\b", "a\xff", "\xc3\xa4", "a%41", "a;b", "a=b", "a&b", "a(b", "a*", "a!",
	"a'b", "\"a\"", "a\x00b", "a\x7f", "http://a", ":80", ":"}

func TestValidHost(t *testing.T) { // 61
	for _, h := range goodHosts {
		require.True(t, h1.ValidHost([]byte(h)), "%q", h)
	}
	for _, h := range append(badHosts, "") {
		require.False(t, h1.ValidHost([]byte(h)), "%q", h)
	}
}

func TestValidHost_EveryByte(t *testing.T) {
	const allowed = "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for c := range 256 {
		want := strings.Contains(allowed, string([]byte{byte(c)}))
		require.Equal(t, want, h1.ValidHost([]byte{'a', byte(c), 'b'}), "%q", byte(c))
		require.Equal(t, want && c != '.', h1.ValidHost([]byte{byte(c)}), "%q", byte(c))
	}
}

func TestHost_IsKeptAsItCame(t *testing.T) { // 61, 63
	for _, h := range goodHosts {
		accepts(t, "GET / HTTP/1.1\r\nHost: "+h+"\r\n\r\n")
		require.Equal(t, h, string(request(t, "GET / HTTP/1.1\r\nHost:\t"+h+" \r\n\r\n").Host()))
	}
}

func TestHost_Refused(t *testing.T) { // 59, 60, 61, 62
	const refused = "malformed Host"
	for _, version := range []string{"1.1", "1.0"} {
		start := "GET / HTTP/" + version + "\r\n"
		for _, h := range badHosts {
			cause := refused
			if strings.ContainsAny(h, "\x00\x02\x7f") {
				cause = badValue
			}
			refuses(t, 400, cause, start+"Host: "+h+"\r\n\r\n")
		}
		for _, two := range []string{"Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host: a\r\nhost: a\r\n",
			"host: a\r\nX: 1\r\nHOST: b\r\n"} {
			refuses(t, 400, "repeated Host", start+two+"\r\n")
		}
		refuses(t, 400, badName, start+"Host: a\r\n Host: b\r\n\r\n")
	}
	refuses(t, 400, "missing Host", "GET / HTTP/1.1\r\n\r\n")
	refuses(t, 400, "missing Host", "GET / HTTP/1.1\r\nX-Host: a\r\n\r\n")
	refuses(t, 400, refused, "GET / HTTP/1.1\r\nHost:\r\n\r\n")
	refuses(t, 400, refused, "GET / HTTP/1.1\r\nHost: \t\r\n\r\n")
	refuses(t, 400, "repeated Host", "GET / HTTP/1.0\r\nHost:\r\nHost: a\r\n\r\n")
}

func TestHost_MayBeMissingInOldRequests(t *testing.T) {
	for _, input := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost:\r\n\r\n"} {
		accepts(t, input)
		require.Empty(t, request(t, input).Host())
	}
}

func TestHost_CannotBeTalkedAwayByConnection(t *testing.T) { // 68
	r := request(t, with("Connection: Host, Content-Length, Transfer-Encoding, Connection\r\n", "Content-Length: 5\r\n"))
	require.Equal(t, "a", string(r.Host()))
	require.EqualValues(t, 5, r.DeclaredLength())
	for i, want := range []h1.Kind{h1.Host, h1.Connection, h1.ContentLength} {
		require.Equal(t, want, r.Fields[i].Kind)
	}
	refuses(t, 400, "repeated Host", with("Connection: host\r\n", "Host: b\r\n"))
	refuses(t, 400, "repeated Content-Length", with("Connection: content-length\r\n", "Content-Length: 5\r\n", "Content-Length: 5\r\n"))
}
