package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// sends is one GET with extra field lines; it returns what the upstream saw.
func (c *client) sends(t testing.TB, lines ...string) *message {
	t.Helper()
	_, q := c.serves(t, request{fields: lines}.String())
	return q
}

func TestCase065_ConnectionOptionsAreRemoved(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		q := newRig(t, m).dial(t).sends(t, "Connection: close, X-Drop, x-drop2", "X-Drop: 1", "X-DROP2: 2", "Keep-Alive: timeout=5",
			"Proxy-Connection: keep-alive", "TE: gzip", "Trailer: X-T", "Upgrade-Insecure-Requests: 1")
		require.Equal(t, []string{"1"}, q.values("Upgrade-Insecure-Requests"))
		for _, name := range []string{"Connection", "X-Drop", "X-Drop2", "Keep-Alive", "Proxy-Connection", "TE", "Trailer"} {
			require.False(t, q.has(name), "%s in %q", name, q.lines())
		}
	})
}

func TestCase066_ConnectionLists(t *testing.T) {
	t.Run("honoured", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			c := newRig(t, m).dial(t)
			for _, lines := range [][]string{{"Connection: , ,X-Drop,,"}, {"Connection: keep-alive", "Connection: X-Drop"},
				{"connection: x-DROP"}, {"Connection:  \tX-Drop\t "}, {"Connection: Y,X-Drop"}, {"Connection: X-Drop", "Connection: X-Drop"},
				{"Connection: ", "Connection: X-Drop"}, {"CONNECTION: foo,\tX-Drop\t,bar"}, {"Connection: X-Dro, X-Drop, X-Dropp"}} {
				q := c.sends(t, append(lines, "X-Drop: 1", "X-Keep: 1")...)
				require.False(t, q.has("X-Drop"), "%q", lines)
				require.True(t, q.has("X-Keep"), "%q", lines)
				require.False(t, q.has("Connection"), "%q", q.lines())
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		refusesFields(t, []string{`Connection: "X-Drop"`, "Connection: a b", "Connection: a;b", "Connection: a, b/c", "Connection: keep-alive\xa0",
			"Connection: X-Drop\r\nConnection: (x)"})
	})
}

func TestCase067_ClosingClientsShareUpstreamConnections(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for range 100 {
			c := r.dial(t)
			require.Equal(t, 200, c.do(t, request{fields: []string{"Connection: close"}}).status)
			c.closedByPeer(t)
			c.close()
		}
		require.LessOrEqual(t, len(r.U[1].connections()), 4)
	})
}

func TestCase068_OwnFieldsSurviveConnectionOptions(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		c := newRig(t, m).dial(t)
		for _, line := range []string{"Connection: X-Forwarded-For, x-forwarded-proto, Host, Via", "Connection: host", "Connection: via, x-nonce2",
			"Connection: Content-Length, Transfer-Encoding"} {
			q := c.sends(t, line, "X-Forwarded-For: 6.6.6.6")
			require.Equal(t, []string{"a"}, q.values("Host"))
			require.Equal(t, []string{"127.0.0.1"}, q.values("X-Forwarded-For"))
			require.Len(t, q.values("X-Forwarded-Proto"), 1)
			require.Equal(t, []string{"1.1 ferryman"}, q.values("Via"))
		}
		_, q := c.serves(t, request{m: "POST", body: "hello", fields: []string{"Connection: Content-Length"}}.String())
		require.Equal(t, "hello", string(q.body), "a framing field cannot be taken away by a client's Connection")
	})
}

func TestCase069_ConnectionOptionsOfResponses(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nKeep-Alive: 1\r\n" +
			"Proxy-Connection: x\r\nUpgrade: h2c\r\nTE: trailers\r\nX-Keep: 1\r\nContent-Length: 2\r\n\r\nok"))
		c := r.dial(t)
		resp := c.do(t, request{})
		require.Equal(t, "ok", string(resp.body))
		require.True(t, resp.has("X-Keep"))
		for _, name := range []string{"X-Secret", "Keep-Alive", "Proxy-Connection", "Upgrade", "TE"} {
			require.False(t, resp.has(name), "%s in %q", name, resp.lines())
		}
		require.NotContains(t, strings.ToLower(strings.Join(resp.values("Connection"), ",")), "secret")
		r.U[1].gone(t, 0)
		require.Equal(t, 200, c.do(t, request{}).status, "the upstream's close is not the client's")
	})
}

func TestCase070_TEIsDroppedTrailersAreNot(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, te := range []string{"trailers", "trailers, gzip", "trailers;q=0.5"} {
			r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"))
			resp, q := c.serves(t, request{fields: []string{"TE: " + te, "Connection: TE"}}.String())
			require.False(t, q.has("TE"))
			require.Equal(t, "X-T: 1", resp.trailers[0].line)
		}
	})
}

func TestCase071_ProxyFieldsAreDropped(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nProxy-Authenticate: Basic\r\nproxy-authenticate: Digest\r\nContent-Length: 0\r\n\r\n"))
		resp, q := c.serves(t, request{fields: []string{"Proxy: x", "pRoXy: y", "Proxy-Authorization: Basic x", "Authorization: keep"}}.String())
		require.False(t, q.has("Proxy"))
		require.False(t, q.has("Proxy-Authorization"))
		require.True(t, q.has("Authorization"))
		require.False(t, resp.has("Proxy-Authenticate"))
	})
}

func TestCase072_UnknownFieldsPass(t *testing.T) {
	lines := []string{"B: 2", "A: 1", "Empty:", "B: 1", "Eight: \x80\xff", "Set-Cookie: a=1", "Set-Cookie: b=2, c=3", "x-lower: V", "a: 1"}
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\n" + strings.Join(lines, "\r\n") + "\r\nContent-Length: 0\r\n\r\n"))
		resp, q := r.dial(t).serves(t, request{fields: lines}.String())
		for _, got := range []*message{resp, q} {
			var seen []string
			for _, f := range got.fields {
				if i := slices.IndexFunc(lines, func(l string) bool { n, _, _ := strings.Cut(l, ":"); return n == f.name }); i >= 0 {
					seen = append(seen, strings.TrimSuffix(f.name+": "+f.value, " "))
				}
			}
			require.Equal(t, lines, seen)
		}
	})
}

func TestCase073_Via(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		c := r.dial(t)
		q := c.sends(t)
		require.Equal(t, []string{"1.1 ferryman"}, q.values("Via"))
		q = c.sends(t, "Via: 1.0 fred, 1.1 p.example", "Via: 1.1 ferryman")
		require.Equal(t, "1.0 fred, 1.1 p.example, 1.1 ferryman, 1.1 ferryman", strings.Join(q.values("Via"), ", "))
		resp, _ := c.serves(t, request{}.String())
		require.False(t, resp.has("Via"))
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nVia: 1.1 other\r\nContent-Length: 0\r\n\r\n"))
		resp, _ = c.serves(t, request{}.String())
		require.Equal(t, []string{"1.1 other"}, resp.values("Via"))

		nine := strings.Repeat("1.1 ferryman, ", 8) + "1.1 ferryman"
		c.sends(t, "Via: "+nine)
		for _, lines := range [][]string{{"Via: " + nine + ", 1.1 ferryman"}, {"Via: " + nine, "Via: x", "via: 1.1 ferryman"},
			{"Via: " + nine + ",1.1 ferryman,1.1 ferryman"}} {
			require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
				before := r.heads()
				c := r.dial(t)
				defer c.close()
				own(t, c.do(t, request{fields: lines}), 508, "")
				require.Equal(t, before, r.heads())
			}))
		}
	})
}

func TestCase073_LoopStops(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.reload(t, func(c *config.Config) {
			c.Routes = append(c.Routes, config.Route{Prefix: "/loop", Upstream: r.addr})
		})
		c := r.dial(t)
		own(t, c.do(t, request{path: "/loop"}), 508, "")
		// The proxy is its own client: its idle connections to itself end with the route.
		r.reload(t, func(c *config.Config) { c.Routes = c.Routes[:len(c.Routes)-1] })
	}, plainModes()...)
}

func TestCase074_MaxForwards(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		before := r.heads()
		resp := c.do(t, request{m: "OPTIONS", fields: []string{"Max-Forwards: 0"}})
		require.Equal(t, 200, resp.status)
		require.Empty(t, resp.body)
		require.Equal(t, []string{"0"}, resp.values("Content-Length"))
		require.Len(t, resp.values("Date"), 1)
		require.Equal(t, before, r.heads(), "the last hop is ferryman itself")
		for in, out := range map[string]string{"3": "2", "1": "0", "10": "9", "100": "99"} {
			_, q := c.serves(t, request{m: "OPTIONS", fields: []string{"Max-Forwards: " + in}}.String())
			require.Equal(t, []string{out}, q.values("Max-Forwards"))
		}
		require.Equal(t, []string{"0"}, c.sends(t, "Max-Forwards: 0").values("Max-Forwards"))
		require.Equal(t, []string{"x"}, c.sends(t, "Max-Forwards: x").values("Max-Forwards"))
		for _, v := range []string{"x", "", "-1", "+3", "3x", "3, 3", "0x3", "3.0"} {
			t.Run(label(v), func(t *testing.T) {
				r.refuses(t, "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: "+v+"\r\n\r\n")
			})
		}
	})
}

func TestCase075_DateOfResponses(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		require.Len(t, c.do(t, request{}).values("Date"), 1)
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\ndate: Tue, 15 Nov 1994 08:12:31 GMT\r\nContent-Length: 0\r\n\r\n"))
		require.Equal(t, []string{"Tue, 15 Nov 1994 08:12:31 GMT"}, c.do(t, request{}).values("Date"))
	})
}

// Cases 76 and 123.
func TestCase076And123_NothingIsInvented(t *testing.T) {
	gz := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00"
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		q := c.sends(t)
		var names []string
		for _, f := range q.fields {
			names = append(names, f.name)
		}
		slices.Sort(names)
		require.Equal(t, []string{"Host", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Nonce"}, names)

		kept := []string{"Server: s/1", "ETag: W/\"1\"", "Content-Language: de", "Content-Type: a/b", "Content-MD5: x", "Vary: Accept-Encoding",
			"Content-Encoding: gzip", "Accept-Ranges: bytes", "Last-Modified: never"}
		r.U[1].play(reply(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\n%s\r\nContent-Length: %d\r\n\r\n%s", strings.Join(kept, "\r\n"), len(gz), gz)))
		resp, q := c.serves(t, request{fields: []string{"Accept-Encoding: gzip", "User-Agent: u/1", "Accept: */*"}}.String())
		require.Equal(t, gz, string(resp.body))
		require.Subset(t, q.lines(), []string{"Accept-Encoding: gzip", "User-Agent: u/1", "Accept: */*"})
		require.Subset(t, resp.lines(), kept)
		names = nil
		for _, f := range resp.fields {
			if !slices.Contains(kept, f.line) {
				names = append(names, f.name)
			}
		}
		slices.Sort(names)
		require.Equal(t, []string{"Content-Length", "Date", "X-U"}, names)
	})
}
