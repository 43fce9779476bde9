package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCase076_NothingIsInventedOnHTTP2(t *testing.T) {
	const gz = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00"
	kept := [][2]string{{"server", "s/1"}, {"etag", `W/"1"`}, {"content-language", "de"}, {"content-type", "a/b"},
		{"content-encoding", "gzip"}, {"vary", "Accept-Encoding"}, {"content-length", fmt.Sprint(len(gz))}}
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		_, q := h.serve(t, r.U[1], "GET", "/")
		var names []string
		for _, f := range q.fields {
			names = append(names, strings.ToLower(f.name))
		}
		slices.Sort(names)
		require.Equal(t, []string{"host", "via", "x-forwarded-for", "x-forwarded-proto", "x-nonce"}, names)

		_, q = h.serve(t, r.U[1], "GET", "/", "accept-encoding", "gzip", "user-agent", "u/1")
		require.Equal(t, []string{"gzip"}, q.values("Accept-Encoding"))
		require.Equal(t, []string{"u/1"}, q.values("User-Agent"))

		raw := "HTTP/1.1 200 OK\r\n"
		for _, f := range kept {
			raw += f[0] + ": " + f[1] + "\r\n"
		}
		r.U[1].play(reply(raw + "\r\n" + gz))
		s := h.want(t, h.ask("GET", "/", true), 200)
		require.Equal(t, gz, string(s.data), "123: as it came")
		rest := slices.DeleteFunc(slices.Clone(s.final().fields), func(f [2]string) bool { return f[0] == "date" })
		require.Equal(t, kept, rest)
	})
}

func TestCase112_FoldedFieldsOfResponsesAreNotPassedOn(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		h := r.dialH2(t)
		for _, bad := range []string{"X: a\r\n b", "X: a\r\n\tb", "X:\r\n b", "X: a\r\n :status: 204", "X: a\rY: b", "X: a\nY: b", "X: a\r"} {
			t.Run(label(bad), func(t *testing.T) {
				r.closeCircuit(t)
				opened, heads := r.transitions(r.U[1], "open"), len(r.U[1].started())
				r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\n" + bad + "\r\nContent-Length: 0\r\n\r\n"))
				s := h.want(t, h.ask("POST", "/", true), 502) // want looks for line ends in every head
				require.Equal(t, "bad gateway", strings.TrimSpace(string(s.data)))
				r.U[1].gone(t, r.U[1].awaitStarted(t, heads+1).conn)
				require.Equal(t, opened+1, r.transitions(r.U[1], "open"), "one failure must count")
			})
		}
	})
}

// Of a path that is refused the stream ends, the connection goes on: all targets share one.
func TestCase199_RoutesOfTargetsOnHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, c := range routed {
			if c.up == "" {
				before := r.heads()
				ownH2(t, h.want(t, h.ask("GET", c.target, true), 400))
				require.Equal(t, before, r.heads(), "%s: an upstream was asked", c.target)
				continue
			}
			s, q := h.serve(t, r.upstream(c.up), "GET", c.target)
			require.Equal(t, c.up, s.final().get("x-u"), c.target)
			require.Equal(t, c.target, q.target)
		}
	})
}
