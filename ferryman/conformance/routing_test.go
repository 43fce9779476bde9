package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

// routed says which upstream a target leads to; "" is 400. What the upstream sees is the target itself.
var routed = []struct{ target, up string }{
	{"/", "U1"}, {"/api", "U2"}, {"/api/", "U2"}, {"/api/x", "U2"}, {"/api?x", "U2"}, {"/apix", "U1"}, {"/ap", "U1"}, {"/api-x", "U1"}, {"/api.x", "U1"},
	{"/api;p", "U1"}, {"/API", "U1"}, {"/api/v1", "U3"}, {"/api/v1/", "U3"}, {"/api/v10", "U2"}, {"/api/v1?q", "U3"}, {"/api/v", "U2"},
	// 193: dot segments
	{"/api/../x", ""}, {"/api/./v1", ""}, {"/x/../api/v1", ""}, {"/api/v1/..", ""}, {"/..", ""}, {"/../api", ""}, {"/.", ""},
	{"/api/%2e%2e/x", ""}, {"/%2E", ""}, {"/.%2e/x", ""}, {"/x/%2e/y", ""}, {"/a/.%2E", ""}, {"/.?x", ""}, {"/...", "U1"}, {"/a..b", "U1"}, {"/.a", "U1"}, {"/a/.../b", "U1"},
	// 194: an encoded slash is no separator
	{"/api%2Fv1/x", "U1"}, {"/a%2fb", "U1"}, {"/api/v1%2Fx", "U2"}, {"/api%2F", "U1"},
	// 195: other escapes
	{"/api%5cv1", "U1"}, {"/api%0d%0aX:y", "U1"}, {"/api%20v1", "U1"}, {"/api%3Fx", "U1"}, {"/api%23x", "U1"}, {"/api%3bx", "U1"}, {"/api%00", ""}, {`/api\v1`, ""}, {"/x%00y", ""},
	// 196: runs of slashes
	{"//api/v1", ""}, {"/api//v1", ""}, {"///", "U1"}, {"//evil.example/x", "U1"}, {"/api/v1//x", "U3"}, {"//", "U1"}, {"/x//api", "U1"},
	// 197: escapes of unreserved characters
	{"/%61pi/v1", ""}, {"/ap%69", ""}, {"/%61bc", "U1"}, {"/api/%7Eu", "U2"}, {"/api/v%31", ""}, {"/api%2fv%31", "U1"}, {"/%61%70%69", ""},
	// 198: well-formed escapes are opaque, malformed ones are not
	{"/%c0%af", "U1"}, {"/%ff", "U1"}, {"/%E4%BD", "U1"}, {"/api/%c0%ae%c0%ae/x", "U2"},
	{"/%", ""}, {"/%2", ""}, {"/%g1", ""}, {"/%u002f", ""}, {"/a%", ""}, {"/%2g/x", ""}, {"/%%32e", ""}, {"/?%", "U1"}, {"/?%zz", "U1"}, {"/?%00", "U1"}, {"/?a=../..", "U1"},
	// 201
	{"/x?/api/v1", "U1"}, {"/?/api", "U1"},
}

// Cases 191, 193 to 199 and 201; HTTP/2 has a test of its own.
func TestCase191To201_RoutesOfTargets(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		for _, order := range []string{"as written", "reversed"} {
			r := newRig(t, m, func(s *setup) {
				if order == "reversed" {
					slices.Reverse(s.cfg.Routes)
				}
			})
			for _, c := range routed {
				for _, prefix := range []string{"", "http://b.example"} { // 199: origin and absolute form
					t.Run(label(order+" "+prefix+c.target), func(t *testing.T) {
						raw := "GET " + prefix + c.target + " HTTP/1.1\r\nHost: a\r\n\r\n"
						if c.up == "" {
							r.refuses(t, raw)
							return
						}
						_, q := r.serves(t, raw)
						require.Equal(t, c.up, q.up)
						require.Equal(t, c.target, q.target)
					})
				}
			}
		}
	})
}

func TestCase192_TrailingSlashOfAPrefix(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.Routes[1].Prefix = "/api/" })
		for _, target := range []string{"/api", "/api/", "/api/x"} {
			_, q := r.serves(t, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Equal(t, "U2", q.up)
			require.Equal(t, target, q.target)
		}
		c := r.cfg
		c.Routes = append(slices.Clone(c.Routes), config.Route{Prefix: "/api", Upstream: r.U[1].addr})
		_, err := ferryman.New(c, ferryman.Options{Engine: m.engine})
		require.Error(t, err, "the same prefix twice")
		require.Error(t, r.proxy.Reload(c))
		r.get(t, "/api")
	})
}

func TestCase200_LongPathsAndManyRoutes(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) {
			for i := range scaled(1000) {
				s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: fmt.Sprintf("/a/b%d/a", i), Upstream: s.cfg.Routes[1].Upstream})
			}
		})
		c := r.dial(t)
		_, q := c.serves(t, "GET "+strings.Repeat("/a", 8000)+" HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "U1", q.up)
		_, q = c.serves(t, "GET /a/b999/a"+strings.Repeat("/a", 8000)+" HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "U2", q.up)
	}, modes()[0])
}

func TestCase202_NoRoute(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot)
		c := r.dial(t)
		for _, path := range []string{"/", "/nowhere", "/apix", "/a%2Fb?secret"} {
			resp := c.do(t, request{path: path})
			own(t, resp, 404, "no route")
		}
		// Oracle O6: no body to HEAD, and the connection stays in step.
		resp := c.do(t, request{m: "HEAD", path: "/nowhere"})
		own(t, resp, 404, "")
		require.Equal(t, []string{"8"}, resp.values("Content-Length"))
		require.Equal(t, 5, int(r.metrics()[`ferryman_requests_total{route="none",status="404",upstream="none"}`]))
		require.Zero(t, r.heads())
	})
}

func TestCase203_StrippedPrefix(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		c := newRig(t, m).dial(t)
		for _, row := range []struct{ target, up, sees string }{{"/strip", "U5", "/"}, {"/strip/", "U5", "/"}, {"/strip?q", "U5", "/?q"}, {"/strip/?q", "U5", "/?q"},
			{"/strip/b%2Fc", "U5", "/b%2Fc"}, {"/stripx", "U1", "/stripx"}, {"/strip/a/b?c=/strip", "U5", "/a/b?c=/strip"}, {"/strip//x", "U5", "/x"}} {
			_, q := c.serves(t, "GET "+row.target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Equal(t, row.up, q.up, row.target)
			require.Equal(t, row.sees, q.target)
		}
	})
}

var tokensOfR = []string{"/", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", `\`, ";", "?", "#", "%00", "%25", "a", "api", "v1", "A"}

// TestOracleR_RouterAndUpstreamAgreeOnPaths is a property test: where a path is let through, the route
// is the one that the path has for an upstream that takes raw bytes, normalises or merges slashes.
func TestOracleR_RouterAndUpstreamAgreeOnPaths(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		g := rand.New(rand.NewPCG(uint64(len(m.name)), 15))
		c := r.dial(t)
		for range scaled(700) {
			target := "/"
			for range g.IntN(8) {
				target += tokensOfR[g.IntN(len(tokensOfR))]
			}
			n := nonce()
			c.send("GET " + target + " HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\n\r\n")
			resp := c.must(t, "GET")
			if resp.status == 400 {
				c.closedByPeer(t)
				c.close()
				c = r.dial(t)
				continue
			}
			require.Equal(t, 200, resp.status, "%s", target)
			require.Equal(t, n, resp.get("X-Nonce"))
			path, _, _ := strings.Cut(target, "?")
			for view, read := range map[string]string{"raw": path, "normalised": normalised(path), "merged": merged(path),
				"merged and normalised": normalised(merged(path)), "normalised and merged": merged(normalised(path))} {
				require.Equal(t, lookup(read), resp.get("X-U"), "%s: %s is %s", target, view, read)
			}
			require.Equal(t, target, r.upstream(resp.get("X-U")).withNonce(t, n).target)
		}
	}, plainModes()...)
}

// lookup is the route table of the rig, as a linear scan.
func lookup(path string) string {
	best, up := "", ""
	for prefix, u := range map[string]string{"/": "U1", "/api": "U2", "/api/v1": "U3"} {
		if (prefix == "/" || path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > len(best) {
			best, up = prefix, u
		}
	}
	return up
}

// normalised is RFC 3986 6.2.2: escapes of unreserved characters decoded, dot segments removed.
func normalised(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			var v int
			if _, err := fmt.Sscanf(path[i+1:i+3], "%02x", &v); err == nil && v < 0x80 && (isTokenByte(byte(v)) && strings.IndexByte("!#$%&'*+^`|", byte(v)) < 0) {
				b.WriteByte(byte(v))
				i += 2
				continue
			}
		}
		b.WriteByte(path[i])
	}
	var out []string
	segments := strings.Split(b.String(), "/")[1:]
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, s)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

func merged(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
