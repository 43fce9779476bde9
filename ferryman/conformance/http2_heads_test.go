package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A head over the limit is refused on its stream; the connection and its tables are well.
func TestCase301_HeadsOverTheLimitEndTheirStreamOnly(t *testing.T) {
	var cookies, many []string
	for i := range 30 {
		cookies = append(cookies, "cookie", fmt.Sprintf("c%02d=%s", i, strings.Repeat("c", 4000)))
	}
	for i := range 600 {
		many = append(many, fmt.Sprintf("x-%d", i), "1")
	}
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		goOn := make(chan struct{})
		r.U[2].play(func(c *uconn, q *message) bool { c.body(q); <-goOn; return c.send(describe(q)) })
		slow := h.ask("GET", "/api", true, "x-entry", "1", "x-nonce", nonce())
		r.U[2].awaitStarted(t, 1)
		for name, fields := range map[string][]string{
			"cookies": cookies, "one field": {"x", strings.Repeat("v", 74_000)}, "a large entry": {"x", strings.Repeat("v", 70_000), "x-entry", "1"},
			"fields": many, "a name": {strings.Repeat("n", 80_000), "1"}, "the path": {"x-entry", "2", "x", strings.Repeat("\xff", 200_000)},
		} {
			s := h.want(t, h.open(true, append(pseudo("HEAD", "/"), fields...)...), 431)
			require.Empty(t, s.data, name)
			for _, end := range []bool{true, false} {
				id := h.ask("POST", "/", end, fields...)
				s := h.want(t, id, 431)
				require.NotEmpty(t, s.data, name)
				if !end {
					h.data(id, true, "")
				}
				_, q := h.serve(t, r.U[1], "GET", "/", "x-entry", "1")
				require.Equal(t, []string{"1"}, q.values("x-entry"), "%s: the tables are out of step", name)
			}
		}
		close(goOn)
		h.want(t, slow, 200)
		require.Empty(t, h.goaways)
	})
}

func TestCase303_WhatHasEndedIsBodiless(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		ended := func(method string) *message {
			n := nonce()
			id, head := h.id, h.block(append(pseudo(method, "/"), "x-nonce", n)...)
			h.id += 2
			h.frames(t, rawFrame(0x1, 0x4, id, string(head))+rawFrame(0x0, 0x1, id, "")) // HEADERS, then DATA with the end
			h.want(t, id, 200)
			return r.U[1].withNonce(t, n)
		}
		for _, method := range []string{"POST", "PUT", "PATCH"} {
			_, q := h.serve(t, r.U[1], method, "/")
			require.Equal(t, []string{"0"}, q.values("Content-Length"), method)
			q = ended(method)
			require.Equal(t, []string{"0"}, q.values("Content-Length"), method)
			require.False(t, q.has("Transfer-Encoding"))
		}
		for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS"} {
			_, q := h.serve(t, r.U[1], method, "/")
			require.Equal(t, "none", q.framing, method)
			require.Equal(t, "none", ended(method).framing, method)
		}
	})
}

func TestCase304_TheSameSaidInOtherWords(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		head := func(scheme, authority string, more ...string) []string {
			f := []string{":method", "GET", ":scheme", scheme, ":path", "/"}
			if authority != "" {
				f = append(f, ":authority", authority)
			}
			return append(f, more...)
		}
		for _, good := range []struct {
			host   string
			fields []string
		}{
			{"example.com", head("https", "example.com", "host", "example.com:443")},
			{"example.com:443", head("https", "example.com:443", "host", "example.com")},
			{"example.com", head("http", "example.com", "host", "EXAMPLE.com:80")},
			{"Example.com", head("HTTPS", "Example.com", "host", "example.COM:443")},
			{"example.com:443", head("https", "", "host", "example.com:443", "host", "example.com")},
			{"[::1]", head("https", "[::1]", "host", "[::1]:443")},
			{"a", head("HTTP", "a")},
			{"a", head("https", "a", "te", "Trailers")},
			{"a", head("https", "a", "te", "TRAILERS", "http2-settings", "AAMAAABkAAQAAP__")},
		} {
			n := nonce()
			h.want(t, h.open(true, append(good.fields, "x-nonce", n)...), 200)
			q := r.U[1].withNonce(t, n)
			require.Equal(t, []string{good.host}, q.values("Host"), "%q", good.fields)
			require.False(t, q.has("http2-settings"))
		}
		for _, bad := range [][]string{
			head("https", "example.com", "host", "example.com:80"),
			head("http", "example.com", "host", "example.com:443"),
			head("https", "example.com", "host", "example.co"),
			head("https", "[::1]", "host", "[::1]:80"),
			head("https", "a", "te", "gzip, trailers"),
			head("https", "a", "keep-alive", "1"),
			head("https", "a", "proxy-connection", "close"),
			head("ftp", "a"),
			append(head("https", "a"), ":path", "/x"),
			{":method", "GET", ":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"},
		} {
			h.malformed(t, h.open(true, bad...))
		}
	})
}
