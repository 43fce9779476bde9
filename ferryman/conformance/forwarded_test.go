package conformance

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func trusted(s *setup) {
	s.cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func TestCase077_AddressOfTheClient(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		q := newRig(t, m).dial(t).sends(t)
		require.Equal(t, []string{"127.0.0.1"}, q.values("X-Forwarded-For"))
	})
}

func TestCase077_AddressOfTheClientOverIPv6(t *testing.T) {
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Logf("this machine has no IPv6 loopback, nothing to test: %v", err)
		return
	}
	probe.Close()
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.listen = "[::]:0" })
		_, port, err := net.SplitHostPort(r.addr)
		require.NoError(t, err)
		for host, want := range map[string]string{"127.0.0.1": "127.0.0.1", "::1": "::1"} {
			r.addr = net.JoinHostPort(host, port)
			require.Equal(t, []string{want}, r.dial(t).sends(t).values("X-Forwarded-For"))
		}
	})
}

func TestCase078_UntrustedClientsSayNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		c := newRig(t, m).dial(t)
		for _, lines := range [][]string{{"X-Forwarded-For: 6.6.6.6"}, {"X-Forwarded-For: 1", "X-Forwarded-For: 2, 3", "X-Forwarded-For: 4"},
			{"X-Forwarded-For:"}, {"X-Forwarded-For: " + strings.Repeat("1.1.1.1, ", 3600)}, {"x-forwarded-for: 6.6.6.6"},
			{"X_Forwarded_For: 6.6.6.6"}, {"X.Forwarded.For: 6.6.6.6"}, {"X_Forwarded-For: 6.6.6.6"}, {"x-forwarded_for: 6.6.6.6"},
			{"X_Forwarded_Proto: https"}, {"X.Forwarded-Proto: https"}, {"X_FORWARDED_FOR: 1", "X-Forwarded-For: 2"}} {
			q := c.sends(t, lines...)
			require.Equal(t, []string{"127.0.0.1"}, q.values("X-Forwarded-For"))
			for _, f := range q.fields {
				plain := strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(f.name))
				if strings.HasPrefix(plain, "x-forwarded-") {
					require.Equal(t, plain, strings.ToLower(f.name), "an alias got through")
				}
			}
		}
	})
}

func TestCase079_TrustedClientsAreAppendedTo(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		c := newRig(t, m, trusted).dial(t)
		q := c.sends(t, "X-Forwarded-For: a", "X-Other: 1", "x-forwarded-for: b, c", "X_Forwarded_For: evil", "X.Forwarded.For: evil")
		require.Equal(t, []string{"a, b, c, 127.0.0.1"}, q.values("X-Forwarded-For"))
		require.NotContains(t, strings.Join(q.lines(), "|"), "evil")
		for _, empty := range []string{"X-Forwarded-For:", "X-Forwarded-For: "} {
			require.Equal(t, []string{"127.0.0.1"}, c.sends(t, empty).values("X-Forwarded-For"))
		}
		require.Equal(t, []string{"127.0.0.1"}, c.sends(t).values("X-Forwarded-For"))
	})
}

// forwardingFields are those that ferryman drops but does not write.
var forwardingFields = []string{"Forwarded", "X-Real-Ip", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Prefix"}

func TestCase080_ProtoAndOtherForwardingFields(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		real, other := "http", "https"
		if m.tls {
			real, other = other, real
		}
		var lines []string
		for _, name := range forwardingFields {
			lines = append(lines, name+": x")
		}
		c := newRig(t, m).dial(t)
		require.Equal(t, []string{real}, c.sends(t).values("X-Forwarded-Proto"))
		require.Equal(t, []string{real}, c.sends(t, "X-Forwarded-Proto: "+other).values("X-Forwarded-Proto"))
		require.Equal(t, []string{real}, c.sends(t, "X-Forwarded-Proto: "+other, "x-forwarded-proto: "+other).values("X-Forwarded-Proto"))
		q := c.sends(t, lines...)
		for _, name := range forwardingFields {
			require.False(t, q.has(name), "%s from an untrusted client", name)
		}

		c = newRig(t, m, trusted).dial(t)
		require.Equal(t, []string{real}, c.sends(t).values("X-Forwarded-Proto"))
		require.Equal(t, []string{other}, c.sends(t, "X-Forwarded-Proto: "+other).values("X-Forwarded-Proto"))
		require.Len(t, c.sends(t, "X-Forwarded-Proto: "+other, "X-Forwarded-Proto: "+other).values("X-Forwarded-Proto"), 1)
		q = c.sends(t, lines...)
		for _, name := range forwardingFields {
			require.Equal(t, []string{"x"}, q.values(name), "%s from a trusted client", name)
		}
	})
}

func TestCase081_NothingIsBuiltFromHostOrPath(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		_, q := newRig(t, m).serves(t, "GET /evil.example HTTP/1.1\r\nHost: evil.example:1\r\n\r\n")
		for _, f := range q.fields {
			require.True(t, f.name == "Host" || !strings.Contains(f.value, "evil"), "%q", f.line)
		}
	})
}
