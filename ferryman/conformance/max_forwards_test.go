package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mostHops = "9223372036854775807"

// hopsLeft is what Max-Forwards becomes on the way.
var hopsLeft = map[string]string{"3": "2", "1": "0", "0000000000000000000000000000012": "11", mostHops: "9223372036854775806",
	"12345678901234567890": "9223372036854775806", strings.Repeat("9", 3000): "9223372036854775806"}

func TestCase305_MaxForwardsOfTraceAndOptions(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, method := range []string{"TRACE", "OPTIONS"} {
			before := r.heads()
			resp := c.do(t, request{m: method, fields: []string{"Max-Forwards: 0", "Cookie: secret", "Authorization: secret"}})
			own(t, resp, 200, "")
			require.Empty(t, resp.body, "nothing is reflected")
			require.Equal(t, before, r.heads(), "the last hop is ferryman itself")
			for in, out := range hopsLeft {
				_, q := c.serves(t, request{m: method, fields: []string{"Max-Forwards: " + in}}.String())
				require.Equal(t, []string{out}, q.values("Max-Forwards"))
			}
			for _, v := range []string{"x", "", "-1", "3, 3", "99999999999999999999x"} {
				r.refuses(t, method+" / HTTP/1.1\r\nHost: a\r\nMax-Forwards: "+v+"\r\n\r\n")
			}
			r.refuses(t, method+" / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\nMax-Forwards: 1\r\n\r\n")
		}
		_, q := c.serves(t, request{m: "TRACE"}.String())
		require.False(t, q.has("Max-Forwards"))
		_, q = c.serves(t, request{m: "PUT", fields: []string{"Max-Forwards: 0"}}.String())
		require.Equal(t, []string{"0"}, q.values("Max-Forwards"), "it means nothing to other methods")
	})
}

func TestCase305_MaxForwardsOverHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, method := range []string{"TRACE", "OPTIONS"} {
			before := r.heads()
			s := h.want(t, h.ask(method, "/", true, "max-forwards", "0", "cookie", "secret"), 200)
			ownH2(t, s)
			require.Empty(t, s.data, "nothing is reflected")
			require.Equal(t, before, r.heads())
			for in, out := range hopsLeft {
				_, q := h.serve(t, r.U[1], method, "/", "max-forwards", in)
				require.Equal(t, []string{out}, q.values("Max-Forwards"))
			}
			h.malformed(t, h.ask(method, "/", true, "max-forwards", "-1"))
		}
	})
}
