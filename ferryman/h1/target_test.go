package h1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

func get(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" }

func TestTarget_Length(t *testing.T) { // 10
	for _, n := range []int{1, 8 << 10, h1.MaxTarget - 1, h1.MaxTarget} {
		target := "/" + strings.Repeat("a", n-1)
		accepts(t, get(target))
		require.Equal(t, target, string(request(t, get(target)).Path()))
	}
	for _, n := range []int{h1.MaxTarget + 1, h1.MaxTarget + 2, 60 << 10, 1 << 20} {
		refuses(t, 414, "request target too long", get("/"+strings.Repeat("a", n-1)))
	}
}

func TestTarget_AbsoluteForm(t *testing.T) { // 11
	for _, c := range []struct{ target, sent, path, host string }{
		{"http://b.example/x?q", "/x?q", "/x", "b.example"},
		{"HTTP://B.example/x?q", "/x?q", "/x", "B.example"},
		{"https://b.example:8443/", "/", "/", "b.example:8443"},
		{"hTTpS://b/x/y", "/x/y", "/x/y", "b"},
		{"http://b", "/", "/", "b"},
		{"http://b?q", "/?q", "/", "b"},
		{"http://b?/api/v1", "/?/api/v1", "/", "b"},
		{"http://b/?", "/?", "/", "b"},
		{"http://b//c", "//c", "//c", "b"},
		{"http://[::1]:80/x", "/x", "/x", "[::1]:80"},
		{"http://b/http://c/", "/http://c/", "/http://c/", "b"},
	} {
		accepts(t, get(c.target))
		r := request(t, get(c.target))
		require.Equal(t, c.sent, string(r.AppendTarget(nil, 0)), c.target)
		require.Equal(t, c.path, string(r.Path()), c.target)
		require.Equal(t, c.host, string(r.Host()), c.target)
	}
	r := request(t, get("http://b/api/x?q"))
	require.Equal(t, "/x?q", string(r.AppendTarget(nil, len("/api"))))
	require.Equal(t, "/?q", string(r.AppendTarget(nil, len("/api/x"))))
}

func TestTarget_WhatACutLeavesBeginsWithOneSlash(t *testing.T) { // 203, 311
	for target, want := range map[string]string{
		"/a": "/", "/a/": "/", "/a?q": "/?q", "/a/?q": "/?q", "/a//": "/", "/a//?//": "/?//", "/a//evil.example/x": "/evil.example/x",
		"/a///b//c": "/b//c", "/a/%2f%2fb": "/%2f%2fb", "/a/b": "/b", "http://h/a//b": "/b",
	} {
		require.Equal(t, want, string(request(t, get(target)).AppendTarget(nil, len("/a"))), target)
	}
	require.Equal(t, "//a//b", string(request(t, get("//a//b")).AppendTarget(nil, 0)), "what is not cut stays as it came")
}

func TestTarget_AbsoluteFormNeedsAHostFieldAllTheSame(t *testing.T) {
	refuses(t, 400, "missing Host", "GET http://b/ HTTP/1.1\r\n\r\n")
	refuses(t, 400, "malformed Host", "GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n")
	require.Equal(t, "b", string(request(t, "GET http://b/ HTTP/1.0\r\n\r\n").Host()))
}

func TestTarget_Refused(t *testing.T) { // 12, 13, 14, 15
	for _, target := range []string{
		"http://u:p@a/x", "http://u@a/x", "http://@a/x", "http://a@/", "http://a:80@b/",
		"http:///x", "https://:80/", "http://", "http:/", "http:", "http", "https://", "http:/a/x", "foo://a/x",
		"httpx://a/", "ftp://a/", "ws://a/", "javascript:alert(1)", "http://a b/", "http://a\\b/", "http://a%41/",
		"http://a:b/", "http://a:1:2/", "http://[::1/", "http://a,b/", "http://\xff/", "http://.a/", "http://..",
		"a", "admin/a", "a:80", "*", "?x", "**", "*/x", "/x#frag", "#", "/#", "http://a#b", "http://a/#", "\\", ".", "..",
	} {
		cause := badTarget
		if strings.Contains(target, " ") {
			cause = badVersion
		}
		refuses(t, 400, cause, get(target))
	}
	for _, target := range []string{"//evil/x", "///", "/http://b/", "/*", "/@", "/a:80"} {
		require.Equal(t, "a", string(request(t, get(target)).Host()))
		require.Equal(t, target, string(request(t, get(target)).Path()), "a path, never an authority")
	}
}

func TestTarget_OptionsStar(t *testing.T) { // 14, 92
	options := func(target string) string { return strings.Replace(get(target), "GET", "OPTIONS", 1) }
	for target, host := range map[string]string{"*": "a", "http://b": "b", "https://b:443": "b:443"} {
		accepts(t, options(target))
		r := request(t, options(target))
		require.True(t, r.Star && r.Options)
		require.Equal(t, "*", string(r.AppendTarget(nil, 0)))
		require.Equal(t, "/", string(r.Path()))
		require.Equal(t, host, string(r.Host()))
	}
	for _, target := range []string{"/", "http://b/", "http://b?q", "/*"} {
		accepts(t, options(target))
		require.False(t, request(t, options(target)).Star, target)
	}
	for _, target := range []string{"*/x", "**", "*?", "x*"} {
		refuses(t, 400, badTarget, options(target))
	}
	refuses(t, 400, badTarget, "options * HTTP/1.1\r\nHost: a\r\n\r\n")
}

func TestTarget_EveryByte(t *testing.T) { // 16
	for c := range 256 {
		raw := string([]byte{byte(c)})
		for _, target := range []string{"/a" + raw + "b", "/a?b" + raw + "c"} {
			switch {
			case c == '\n':
				refuses(t, 400, bareLF, get(target))
			case c == ' ':
				refuses(t, 400, badVersion, get(target))
			case c < ' ' || c == 0x7f || c == '#':
				refuses(t, 400, badTarget, get(target))
			default:
				accepts(t, get(target))
				require.Equal(t, target, string(request(t, get(target)).AppendTarget(nil, 0)))
			}
		}
	}
}

func TestTarget_Connect(t *testing.T) { // 86
	connect := func(target string) string { return "CONNECT " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" }
	for _, target := range []string{"a:443", "a.example:1", "[::1]:443", "1.2.3.4:80"} {
		accepts(t, connect(target))
		require.True(t, request(t, connect(target)).Connect)
	}
	for _, target := range []string{"/", "a", "http://a:80", "*", "a:", "a:x", ":443", "[::1]", "[::1", "a:1:2", "u@a:1",
		"a:443/", "a:443?x", "a:99999", "//a:443"} {
		refuses(t, 400, badTarget, connect(target))
	}
	require.False(t, request(t, get("/")).Connect)
}
