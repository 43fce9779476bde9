package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// dotted are targets with a segment that some upstream takes for a dot segment, whatever ends it, and
// undotted are those that only look like it.
var (
	dotted = []string{"/x/..;/admin", "/x/..%2fadmin", "/x/..%2Fadmin", "/x/%2e%2e%5cadmin", "/x/..%5Cadmin", "/x/.;a=b/c", "/x/..%3b/y", "/x/.%3B",
		"/x/..;", "/x%2f..", "/x%2f../admin", "/x%5c.%5cy", "/api/..;/x", "/strip/..;/admin", "/strip/..%2fadmin", "/a;b%2F..;c/d", "/x/..;?q"}
	undotted = []string{"/..foo", "/a;..", "/a;../b", "/x/..%20y", "/x%2fy", "/x%5cy", "/x%2f.a", "/x;%2f", "/x/;/y", "/...;x", "/x/..%252fadmin", "/x?/..;/../..%2f"}
)

func TestCase310_DotSegmentsWhateverDelimitsThem(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, target := range dotted {
			for _, prefix := range []string{"", "http://b.example"} {
				r.refuses(t, "GET "+prefix+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			}
		}
		c := r.dial(t)
		for _, target := range undotted {
			_, q := c.serves(t, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Equal(t, target, q.target)
			require.Equal(t, "U1", q.up)
		}
	})
}

func TestCase310_DotSegmentsOverHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		before := r.heads()
		for _, target := range dotted {
			h.want(t, h.ask("GET", target, true), 400)
		}
		require.Equal(t, before, r.heads(), "an upstream was asked")
		for _, target := range undotted {
			_, q := h.serve(t, r.U[1], "GET", target)
			require.Equal(t, target, q.target)
		}
	})
}
