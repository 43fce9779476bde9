package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// stripped are targets of the route /strip, and what is left of them. Two slashes at the front could be
// taken for an authority, by the upstream or by a browser that it redirects.
var stripped = []struct{ target, sees string }{
	{"/strip//evil.example/x", "/evil.example/x"}, {"/strip///evil.example//x", "/evil.example//x"}, {"/strip//", "/"}, {"/strip//?//q", "/?//q"},
	{"/strip/%2f%2fevil.example", "/%2f%2fevil.example"}, {"/strip/a//b", "/a//b"}, {"/strip/", "/"}, {"/strip", "/"},
}

func TestCase311_AStrippedTargetBeginsWithOneSlash(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, row := range stripped {
			for _, prefix := range []string{"", "http://b.example"} {
				_, q := c.serves(t, "GET "+prefix+row.target+" HTTP/1.1\r\nHost: a\r\n\r\n")
				require.Equal(t, "U5", q.up)
				require.Equal(t, row.sees, q.target, row.target)
			}
		}
		_, q := c.serves(t, "GET //evil.example/x HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "//evil.example/x", q.target, "what is not stripped goes out as it came")
		r.refuses(t, "GET /strip/\\evil HTTP/1.1\r\nHost: a\r\n\r\n")
	})
}

func TestCase311_ARootThatStripsLeavesOneSlash(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.reload(t, func(c *config.Config) { c.Routes[0].StripPrefix = true })
		c := r.dial(t)
		for target, sees := range map[string]string{"//evil.example/x": "/evil.example/x", "/": "/", "/?//q": "/?//q", "/x//y": "/x//y"} {
			_, q := c.serves(t, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Equal(t, sees, q.target)
		}
		_, q := c.serves(t, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "*", q.target)
	})
}

func TestCase311_AStrippedTargetOverHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, row := range stripped {
			_, q := h.serve(t, r.U[5], "GET", row.target)
			require.Equal(t, row.sees, q.target, row.target)
		}
	})
}
