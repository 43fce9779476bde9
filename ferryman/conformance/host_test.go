package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// refusesHosts refuses requests whose field section is exactly the given one.
func refusesHosts(t *testing.T, sections []string) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, s := range sections {
			t.Run(label(s), func(t *testing.T) { r.refuses(t, "GET / HTTP/1.1\r\n"+s+"\r\n") })
		}
	})
}

func TestCase059_HostIsRequired(t *testing.T) {
	refusesHosts(t, []string{"", "X: 1\r\n", "Hos: a\r\n", "Hostt: a\r\n"})
}

func TestCase060_TwoHostsAreRefused(t *testing.T) {
	refusesHosts(t, []string{"Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host: a\r\nhost: b\r\n", "HOST: a\r\nX: 1\r\nhOsT: a\r\n",
		"Host: a\r\n Host: b\r\n", " Host: a\r\nHost: b\r\n", "Host: a\r\nHost:\r\n"})
}

func TestCase061_HostValues(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		var sections []string
		for _, v := range []string{"a b", "a\tb", "a/b", "a?b", "a#b", "a@b", "u:p@a", "a:", "a:abc", "a:1:2", "a:99999", "[::1", "::1",
			"[::1]x", "[::1]:80x", ".", "..a", "a,b", "a\x02", `a\b`, "a\xff", "a:65536", "a:-1", "a:+1", "[]", "[::1]:", "[g::1]", "[::1%25lo]",
			"http://a", "a:0x50", "<a>", "a\"", "a,a", "[1.2.3.4]", "[::1]]", "a[", "%", "a:80:80"} {
			sections = append(sections, "Host: "+v+"\r\n")
		}
		refusesHosts(t, sections)
	})
	t.Run("forwarded", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			for _, v := range []string{"a", "A", "a:8080", "a.", "[::1]", "[::ffff:1.2.3.4]:80", "a_b", "xn--e1afmkfd", "127.0.0.1", "a-b.c:1",
				"a:65535", "sub.domain.example.com", "[2001:db8::1]:8443", "1"} {
				t.Run(label(v), func(t *testing.T) {
					_, q := r.serves(t, "GET / HTTP/1.1\r\nHost: "+v+"\r\n\r\n")
					require.Equal(t, []string{v}, q.values("Host"))
				})
			}
		})
	})
}

func TestCase062_EmptyHostIsRefused(t *testing.T) {
	refusesHosts(t, []string{"Host:\r\n", "Host: \r\n", "Host: \t \r\n", "Host: :80\r\n"})
}

func TestCase063_HostKeepsItsBytes(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		_, q := r.serves(t, "GET / HTTP/1.1\r\nHost: Example.COM:8443\r\n\r\n")
		require.Equal(t, []string{"Example.COM:8443"}, q.values("Host"))
		// An HTTP/1.0 request may come without one; a request upstream must not.
		c := r.dial(t)
		c.send("GET / HTTP/1.0\r\n\r\n")
		c.want(t, "GET", 200)
		require.Len(t, r.U[1].last(t).values("Host"), 1)
	})
}

func TestCase064_OwnRepliesDoNotRepeatHost(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1, func(s *setup) {
			s.cfg.DefaultCooldown = patience
			s.cfg.Routes[0].Prefix = "/first" // no route for the rest
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/refused", Upstream: s.cfg.Routes[5].Upstream})
		})
		r.U[2].play(reply("HTTP/1.1 503 x\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"))
		for i, c := range []struct{ start, fields string }{
			{"GET /nowhere HTTP/1.1", ""}, {"GET /down HTTP/1.1", ""}, {"GET /api HTTP/1.1", ""}, {"GET /api HTTP/1.1", ""},
			{"GET /first/../x HTTP/1.1", ""}, {"GET / HTTP/3.0", ""}, {"CONNECT leak.example:443 HTTP/1.1", ""},
			{"GET / HTTP/1.1", "Connection: upgrade\r\nUpgrade: x\r\n"}, {"GET / HTTP/1.1", "Expect: foo\r\n"},
			{"GET / HTTP/1.1", "Bad Field: 1\r\n"}, {"GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1", ""},
		} {
			t.Run(fmt.Sprint(i, label(c.start)), func(t *testing.T) {
				cl := r.dial(t)
				defer cl.close()
				cl.send(c.start + "\r\nHost: leak.example\r\n" + c.fields + "\r\n")
				resp := cl.must(t, "GET")
				require.GreaterOrEqual(t, resp.status, 400)
				require.NotContains(t, string(cl.got), "leak")
				require.NotContains(t, string(resp.body), "nowhere")
			})
		}
	})
}
