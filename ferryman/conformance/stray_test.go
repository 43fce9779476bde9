package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An upstream that sends a body behind an answer that has none is caught. From then on no connection is used
// again after such an answer, so that what comes late meets nobody.
func TestCase322_UpstreamThatSendsABodyWhereThereIsNone(t *testing.T) {
	answers := map[string]string{
		"HEAD": "HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 67\r\n\r\n",
		"GET":  "HTTP/1.1 304 Same\r\nX-U: x\r\nETag: \"a\"\r\n\r\n",
		"PUT":  "HTTP/1.1 204 Done\r\nX-U: x\r\n\r\n",
	}
	forEachMode(t, func(t *testing.T, m mode) {
		for method, head := range answers {
			t.Run(method, func(t *testing.T) {
				r := newRig(t, m)
				u, c := r.U[1], r.dial(t)
				pooled := func() bool { return r.sum("ferryman_upstream_connections", `state="idle"`, u.addr) > 0 }
				eventually(t, func() bool {
					sent := make(chan struct{})
					u.play(func(c *uconn, q *message) bool {
						defer close(sent)
						c.unrecorded()
						return c.body(q) && c.send(head) && within(patience, pooled) && c.send(poison)
					})
					c.do(t, request{m: method})
					<-sent
					n := nonce()
					require.Equal(t, n, c.do(t, request{nonce: n}).get("X-Nonce"), "another's answer")

					u.play(reply(head))
					c.do(t, request{m: method})
					id := u.last(t).conn
					eventually(t, func() bool { return pooled() || u.ended(id) }, "neither pooled nor closed")
					return u.ended(id)
				}, "the upstream is not caught")
				require.Equal(t, 200, c.do(t, request{}).status)
				require.Equal(t, 200, c.do(t, request{}).status)
				require.True(t, u.last(t).index > 0, "others are used again")
			})
		}
	})
}

// ended reports whether the proxy has closed connection id.
func (u *upstream) ended(id int) bool {
	select {
	case <-u.connections()[id].ended:
		return true
	default:
		return false
	}
}
