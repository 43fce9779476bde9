package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nominating are answers whose Connection nominates X-Secret, and what is left of their trailer section.
var nominating = []struct{ lines, trailers, left string }{
	{"Connection: X-Secret\r\n", "X-Secret: 1\r\nX-T: 2\r\n", "x-t"},
	{"Connection: keep-alive, x-secret\r\nTrailer: X-Secret, X-T\r\n", "X-T: 2\r\nX-SECRET: 1\r\nx-secret: 3\r\n", "x-t"},
	{"Connection: X-Other\r\nX-Secret: head\r\nConnection: ,X-Secret\r\n", "X-Secret: 1\r\n", ""},
	{"Connection: X-Sec\r\n", "X-T: 2\r\n", "x-t"}, // what one answer nominates is nothing to the next
	{"", "X-Secret: 1\r\n", "x-secret"},
}

func nominatingAnswer(lines, trailers string) handler {
	return reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n" + lines + "\r\n2\r\nok\r\n0\r\n" + trailers + "\r\n")
}

func TestCase308_TrailersThatConnectionNominatesAreDropped(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, row := range nominating {
			r.U[1].play(nominatingAnswer(row.lines, row.trailers))
			resp := c.do(t, request{})
			require.Equal(t, "ok", string(resp.body))
			require.Equal(t, row.left, lowerNames(resp.trailers), "%q", row.lines)
		}
		require.Len(t, r.U[1].connections(), 1)
		// Those of requests go no further in any case.
		_, q := c.serves(t, "POST / HTTP/1.1\r\nHost: a\r\nConnection: X-Secret\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Secret: 1\r\nX-T: 2\r\n\r\n")
		require.Empty(t, q.trailers)
	})
}

func TestCase308_TrailersThatConnectionNominatesTowardsHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, row := range nominating {
			r.U[1].play(nominatingAnswer(row.lines, row.trailers))
			s := h.want(t, h.ask("GET", "/", true), 200)
			var got []field
			for _, head := range s.heads[1:] {
				for _, f := range head.fields {
					got = append(got, field{name: f[0]})
				}
			}
			require.Equal(t, row.left, lowerNames(got), "%q", row.lines)
		}
	})
}

func lowerNames(fields []field) string {
	var names []string
	for _, f := range fields {
		names = append(names, strings.ToLower(f.name))
	}
	return strings.Join(names, " ")
}
