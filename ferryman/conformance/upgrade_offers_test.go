package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A widespread Java client offers TLS/1.2 with each request.
func TestCase299_OffersThatMayBeDeclinedAreServedAsHTTP11(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, path := range []string{"/", "/ws"} {
			for _, lines := range [][]string{{"Upgrade: TLS/1.2"}, {"Upgrade: h2"}, {"upgrade: tls/1.3, HTTP/2.0"}, {"UPGRADE: Http/3 ,, H2C"}, {"Upgrade:"},
				{"Upgrade: h2c", "Upgrade: TLS/1.0", "Upgrade: "}} {
				resp, q := c.serves(t, request{path: path, fields: append([]string{"Connection: keep-alive, Upgrade"}, lines...)}.String())
				require.Empty(t, resp.values("Connection"), "%q: the connection goes on", lines)
				require.Empty(t, append(q.values("Upgrade"), q.values("Connection")...), "%q", lines)
			}
			_, q := c.serves(t, request{m: "POST", path: path, body: "hello", fields: []string{"Connection: Upgrade", "Upgrade: TLS/1.2"}}.String())
			require.Equal(t, "hello", string(q.body))
		}
		for _, lines := range []string{"Upgrade: TLS/1.2, foo", "Upgrade: foo\r\nUpgrade: TLS/1.2", "Upgrade: h2x", "Upgrade: IRC/6.9, h2c"} {
			r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"+lines+"\r\n\r\n", 501)
		}
	})
}

// An upstream that took up h2c where WebSocket was meant would speak to the client past all rules.
func TestCase299_OffersThatMayBeDeclinedDoNotReachATunnel(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, lines := range [][]string{{"Upgrade: websocket, h2c"}, {"Upgrade: h2c, TLS/1.2", "Upgrade: websocket"}, {"Upgrade: , websocket", "Upgrade: HTTP/2.0"}} {
			r.U[4].play(switches(echoBytes))
			c := r.dial(t)
			resp := c.do(t, request{path: "/ws", fields: append([]string{"Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk"}, lines...)})
			require.Equal(t, 101, resp.status)
			q := r.U[4].last(t)
			require.Equal(t, []string{"websocket"}, q.values("Upgrade"), "%q", lines)
			require.Equal(t, []string{"Upgrade"}, q.values("Connection"))
			require.False(t, q.has("HTTP2-Settings"))
			c.close()
		}
		// All that is asked for is forwarded, as one list.
		r.U[4].play(reply(ok("no")))
		c := r.dial(t)
		require.Equal(t, 200, c.do(t, request{path: "/ws", fields: []string{"Connection: Upgrade", "Upgrade: a/1, h2c", "Upgrade: b"}}).status)
		require.Equal(t, []string{"a/1, b"}, r.U[4].last(t).values("Upgrade"))
	})
}
