package config

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func valid() Config {
	c := Default()
	c.Routes = []Route{{Prefix: "/", Upstream: "127.0.0.1:8000"}}
	return c
}

func TestValidate_DefaultsPlusOneRouteAreValid(t *testing.T) {
	require.NoError(t, valid().Validate())
}

func TestValidate_DefaultsAloneAreNot(t *testing.T) {
	require.EqualError(t, Default().Validate(), "routes: there is none: add [[routes]] with a prefix and an upstream")
}

func TestValidate_ReportsEverythingAtOnce(t *testing.T) {
	c := valid()
	c.FailureThreshold = 0
	c.HealthTimeout = 6 * time.Second
	c.BodyIdleTimeout = -1
	c.TrustedProxies = []netip.Prefix{{}, netip.MustParsePrefix("10.0.0.1/8")}
	c.Routes = append(c.Routes, Route{Prefix: "/", Upstream: "x"}, Route{Prefix: "x", Upstream: "127.0.0.1:8000", Cooldown: time.Second})
	var es Errors
	require.ErrorAs(t, c.Validate(), &es)
	var keys []string
	for _, e := range es {
		keys = append(keys, e.Key)
	}
	require.Equal(t, []string{"failure_threshold", "body_idle_timeout_secs", "health_timeout_secs", "trusted_proxies[0]",
		"trusted_proxies[1]", "routes[1].prefix", "routes[1].upstream", "routes[2].prefix", "routes[2].cooldown_secs"}, keys)
}

func TestConfig_CooldownIsTheRoutesOwnElseTheDefault(t *testing.T) {
	c := Default()
	require.Equal(t, 30*time.Second, c.Cooldown(Route{}))
	require.Equal(t, time.Second, c.Cooldown(Route{Cooldown: time.Second}))
}

func TestValidate_Prefixes(t *testing.T) {
	for _, p := range []string{"/", "/a", "/a/", "/a/b", "/A-b_c.d~", "/a;b=c", "/a%2Fb", "/a%2fb", "/a%20b", "/%c3%a4", "/a:b@c", "/..a", "/a%25"} {
		require.Empty(t, badPrefix(p), p)
	}
	for _, p := range []string{"", "a", "//", "/a//", "/a//b", "//a", "/.", "/..", "/a/../b", "/a/.", "/%2e", "/%2E%2e/a", "/%61", "/%7e", "/%00",
		"/%", "/%2", "/%zz", "/%+1", "/a?b", "/a#b", `/a\b`, "/a b", "/ä", "/a\n", "/a\x7f", "http://a/b", "*"} {
		require.NotEmpty(t, badPrefix(p), p)
	}
}

func TestValidate_Upstreams(t *testing.T) {
	for _, u := range []string{"a:80", "a-b_c.d:1", "a.:65535", "1.2.3.4:80", "[::1]:80", "[2001:db8::1]:8080", "1a.2:80", "localhost:443"} {
		require.Empty(t, badHostPort(u), u)
	}
	for _, u := range []string{"", "a", ":80", "a:", "a:0", "a:65536", "a:-1", "a:+1", "a:080", "a:1_0", "a:http", "::1:80", "[::1]", "[::1:80", "::1]:80",
		"[1.2.3.4]:80", "[fe80::1%eth0]:80", "[]:80", "1.2.3:80", "256.1.1.1:80", "a..b:80", ".a:80", "a b:80", "u@h:80", "h/p:80", "h?q:80", ".:80", "a\n:80", "ä:80"} {
		require.NotEmpty(t, badHostPort(u), u)
	}
}
