package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCase278_MetricsPathOfTheFrontIsAPath(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/debug/pprof/"} {
			_, q := r.serves(t, request{path: path}.String())
			require.Equal(t, path, q.target)
		}
		require.Equal(t, 404, r.status("/api"), "the metrics handler proxies nothing")
	})
}

func TestCase279_NoClientAddsASeries(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		c.do(t, request{})
		c.do(t, request{path: "/api"})
		before := len(r.metrics())
		for i := range scaled(300) {
			c.send(fmt.Sprintf("M%d /%s%d?%d HTTP/1.1\r\nHost: h%d.example\r\n\r\n", i, []string{"", "api/"}[i%2], i, i, i))
			require.Equal(t, 200, c.must(t, "GET").status)
		}
		require.Len(t, r.metrics(), before)
		for k := range r.metrics() {
			require.False(t, strings.Contains(k, "example") || strings.Contains(k, `"M1`), k)
		}
	})
}

func TestCase280_AnsweredRequestsAreCountedOnce(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = patience * 100 })
		require.Equal(t, 1.0, r.sum("ferryman_requests_total"), "the rig's own 400")
		series := func(route, upstream string, status int) int {
			return int(r.metrics()[fmt.Sprintf("ferryman_requests_total{route=%q,status=\"%d\",upstream=%q}", route, status, upstream)])
		}
		c := r.dial(t)
		for range 3 {
			c.do(t, request{path: "/api/x"})
		}
		c.do(t, request{path: "/api/v1", m: "HEAD"})
		c.do(t, request{path: "/nowhere"})
		c.do(t, request{path: "/down"})
		c.do(t, request{path: "/down"})
		r.U[3].play(reply("HTTP/1.1 418 X\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"), reply(earlyHints+"HTTP/1.1 204 X\r\nX-U: x\r\n\r\n"))
		c.do(t, request{path: "/api/v1"})
		c.do(t, request{path: "/api/v1"})
		r.U[2].play(hang)
		gone := r.dial(t)
		gone.send(request{path: "/api"}.String())
		r.U[2].awaitStarted(t, 4)
		gone.close()
		eventually(t, func() bool { return r.sum("ferryman_client_aborts_total", `route="/api"`) == 1 }, "the abort is not counted")
		require.Equal(t, 3, series("/api", r.U[2].addr, 200))
		require.Equal(t, 1, series("/api/v1", r.U[3].addr, 200))
		require.Equal(t, 1, series("/api/v1", r.U[3].addr, 418))
		require.Equal(t, 1, series("/api/v1", r.U[3].addr, 204))
		require.Equal(t, 1, series("none", "none", 404))
		require.Equal(t, 1, series("/down", r.down, 502))
		require.Equal(t, 1, series("/down", r.down, 503))
		require.Equal(t, 10.0, r.sum("ferryman_requests_total"), "an abort is no answer")
		require.Equal(t, 6.0, r.sum("ferryman_request_duration_seconds_count"), "one observation for each upstream head")
		require.Equal(t, 1.0, r.sum("ferryman_connections", `state="idle"`))
		require.Zero(t, r.sum("ferryman_connections", `state="active"`))
	})
}
