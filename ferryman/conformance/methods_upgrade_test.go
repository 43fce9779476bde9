package conformance

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

func TestCase082_UpgradeGets501(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot)
		for _, path := range []string{"/api", "/nowhere"} {
			for _, lines := range []string{"Connection: Upgrade\r\nUpgrade: websocket", "Connection: upgrade\r\nUpgrade: foo", "connection: UPGRADE\r\nupgrade: Foo/1",
				"Connection: keep-alive, Upgrade\r\nUpgrade: websocket", "Connection: Upgrade\r\nUpgrade: websocket, h2c", "Connection: Upgrade\r\nUpgrade: h2c, websocket",
				"Connection: keep-alive\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket"} {
				t.Run(label(path+lines), func(t *testing.T) {
					r.refuses(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n\r\n", 501)
				})
			}
		}
	})
}

// noRoot takes the / route away.
func noRoot(s *setup) { s.cfg.Routes = s.cfg.Routes[1:] }

func TestCase083_UpgradeToH2cIsServed(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, path := range []string{"/", "/ws"} {
			for _, upgrade := range []string{"h2c", "H2C", "h2c, h2c"} {
				resp, q := c.serves(t, request{path: path, fields: []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: " + upgrade, "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"}}.String())
				require.Equal(t, 200, resp.status)
				for _, name := range []string{"Upgrade", "HTTP2-Settings", "Connection"} {
					require.False(t, q.has(name), "%q", q.lines())
				}
			}
		}
	})
}

func TestCase084_UpgradeThatIsNone(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		require.False(t, r.dial(t).sends(t, "Upgrade: x").has("Upgrade"))
		require.False(t, r.dial(t).sends(t, "Connection: Upgrade").has("Upgrade"))
		for _, path := range []string{"/", "/ws"} {
			_, q := r.serves(t, "GET "+path+" HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			require.False(t, q.has("Upgrade"))
			require.False(t, q.has("Connection"))
		}
	})
}

func TestCase085_BodyOfARefusedUpgrade(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		const head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n"
		r.refusesExactly(t, head+"Content-Length: 35\r\n\r\n"+smuggled, 501)
		r.refusesExactly(t, head+"Transfer-Encoding: chunked\r\n\r\n23\r\n"+smuggled+"\r\n0\r\n\r\n", 501)
		r.refuses(t, head+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501)
	})
}

func TestCase086_Connect(t *testing.T) {
	refusesLines(t, []string{"CONNECT a:443 HTTP/1.1", "CONNECT [::1]:443 HTTP/1.1"}, 501)
	t.Run("malformed", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			for _, target := range []string{"/", "a", "http://a:80", "a:", ":443", "a:b", "u@a:443", "*", "a:443/x"} {
				t.Run(label(target), func(t *testing.T) { r.refuses(t, "CONNECT "+target+" HTTP/1.1\r\nHost: a\r\n\r\n") })
			}
		})
	})
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nX-U: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

var upgradeLines = []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: k"}

// switches accepts an upgrade, then hands the connection to f.
func switches(f func(c *uconn)) handler {
	return func(c *uconn, q *message) bool {
		c.unrecorded()
		if !c.body(q) || !c.send(switching) {
			return false
		}
		f(c)
		return false
	}
}

func echoBytes(c *uconn) {
	_, _ = io.Copy(c.conn, c.w.br)
	c.fin()
}

func TestCase088_TunnelCarriesBytesBothWays(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[4].play(switches(echoBytes))
		c := r.dial(t)
		resp := c.do(t, request{path: "/ws/chat?x", fields: upgradeLines})
		require.Equal(t, 101, resp.status)
		require.Equal(t, "websocket", resp.get("Upgrade"))
		require.Contains(t, strings.ToLower(resp.get("Connection")), "upgrade")
		q := r.U[4].last(t)
		require.Equal(t, "GET /ws/chat?x HTTP/1.1", q.line)
		require.Equal(t, "websocket", q.get("Upgrade"))
		require.Contains(t, strings.ToLower(q.get("Connection")), "upgrade")
		require.True(t, q.has("Sec-WebSocket-Key"))

		size := scaled(8 << 20)
		sent := sha256.New()
		go func() {
			g := rand.New(rand.NewPCG(1, 2))
			block := make([]byte, 32<<10)
			for left := size; left > 0; {
				part := block[:min(left, 1+g.IntN(len(block)))]
				for i := range part {
					part[i] = byte(g.Uint32())
				}
				sent.Write(part)
				c.send(string(part))
				left -= len(part)
			}
		}()
		got := sha256.New()
		_ = c.conn.SetReadDeadline(time.Now().Add(4 * patience))
		_, err := io.CopyN(got, c.w.br, int64(size))
		require.NoError(t, err)
		require.Equal(t, sent.Sum(nil), got.Sum(nil))
		c.still(t)
		c.fin()
		c.closedByPeer(t)
		r.U[4].gone(t, q.conn)
	})
}

func TestCase088_EitherEndClosesTheTunnel(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		open := func(f func(*uconn)) *client {
			r.U[4].play(switches(f))
			c := r.dial(t)
			require.Equal(t, 101, c.do(t, request{path: "/ws", fields: upgradeLines}).status)
			return c
		}
		require.Equal(t, success, r.verdictOf(t, "/ws", r.U[4], func() {
			c := open(func(c *uconn) { c.send("bye"); c.fin() })
			b, err := c.end()
			require.NoError(t, err)
			require.Equal(t, "bye", string(b))
			c.close()
			r.U[4].gone(t, r.U[4].last(t).conn)
		}))
		c := open(func(c *uconn) { c.drain() })
		c.close()
		r.U[4].gone(t, r.U[4].last(t).conn)
		c = open(func(c *uconn) { c.drain() })
		c.rst()
		r.U[4].gone(t, r.U[4].last(t).conn)
		c = open(func(c *uconn) { c.reset() })
		_, err := c.end()
		_ = err // FIN or RST, but an end
		r.awaitNothingInUse(t, r.U[4])
	})
}

func TestCase088_RefusedUpgradeIsAnOrdinaryResponse(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, status := range []string{"200 OK", "426 Upgrade Required"} {
			r.U[4].play(func(c *uconn, q *message) bool {
				c.unrecorded()
				return c.body(q) && c.send("HTTP/1.1 "+status+"\r\nX-U: x\r\nContent-Length: 2\r\n\r\nno")
			})
			c := r.dial(t)
			resp := c.do(t, request{path: "/ws", fields: upgradeLines})
			require.Equal(t, status, resp.line[9:])
			require.Equal(t, "no", string(resp.body))
			require.False(t, resp.has("Upgrade"))
		}
	})
}

func TestCase089_BytesBehindAnUpgrade(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[4].play(switches(echoBytes))
		c := r.dial(t)
		c.send(request{path: "/ws", fields: upgradeLines}.String()+"early", "later")
		require.Equal(t, 101, c.must(t, "GET").status)
		c.fin()
		b, err := c.end()
		require.NoError(t, err)
		require.Equal(t, "earlylater", string(b))

		r.U[4].play(func(c *uconn, q *message) bool {
			c.unrecorded()
			return c.body(q) && c.send(ok("no"))
		})
		before := r.heads()
		c = r.dial(t)
		c.send(request{path: "/ws", fields: upgradeLines}.String() + smuggled)
		require.Equal(t, "no", string(c.want(t, "GET", 200).body))
		c.closedByPeer(t)
		require.Equal(t, before+1, r.heads(), "the bytes behind it are no request")
	})
}

func TestCase090_TunnelsAndTheRest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = patience })
		r.U[4].play(switches(echoBytes))
		c := r.dial(t)
		require.Equal(t, 101, c.do(t, request{path: "/ws", fields: upgradeLines}).status)
		require.Equal(t, 200, r.get(t, "/ws").status)
		require.NotEqual(t, 0, r.U[4].last(t).conn, "the tunnel's connection is not for sharing")
		c.fin()
		c.closedByPeer(t)
		r.get(t, "/ws")
		require.NotEqual(t, 0, r.U[4].last(t).conn)

		r.fail(t, "/ws", r.U[4])
		c = r.dial(t)
		own(t, c.do(t, request{path: "/ws", fields: upgradeLines}), 503, "upstream unavailable")
	})
}

func TestCase091_TraceIsForwarded(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		_, q := newRig(t, m).serves(t, "TRACE /x HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "TRACE /x HTTP/1.1", q.line)
	})
}

func TestCase092_Options(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		_, q := r.serves(t, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "OPTIONS * HTTP/1.1", q.line)
		require.Equal(t, "U1", q.up)
		_, q = r.serves(t, "OPTIONS /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "U2", q.up)
		r.reload(t, func(c *config.Config) { c.Routes = c.Routes[1:] })
		c := r.dial(t)
		own(t, c.do(t, request{m: "OPTIONS", path: "*"}), 404, "no route")
	})
}
