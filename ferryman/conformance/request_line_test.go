package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCase001_PlainGetIsServed(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		resp, q := r.serves(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, "GET / HTTP/1.1", q.line)
		require.Equal(t, []string{"a"}, q.values("Host"))
		require.Equal(t, "U1", resp.get("X-U"))
	})
}

func TestCase002_EmptyLinesBeforeARequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.serves(t, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
		r.refuses(t, strings.Repeat("\r\n", 10_000)+"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	})
}

// refusesLines refuses a family of request lines.
func refusesLines(t *testing.T, lines []string, statuses ...int) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, line := range lines {
			t.Run(label(line), func(t *testing.T) {
				r.refuses(t, line+"\r\nHost: a\r\n\r\n", statuses...)
			})
		}
	})
}

func TestCase003_OtherSeparatorsThanOneSpaceAreRefused(t *testing.T) {
	refusesLines(t, []string{"GET  / HTTP/1.1", "GET\t/ HTTP/1.1", "GET /\tHTTP/1.1", "GET /  HTTP/1.1",
		"GET\t/\tHTTP/1.1", "GET \t/ HTTP/1.1", "GET / \tHTTP/1.1", "GET\x0b/ HTTP/1.1", "GET\xa0/ HTTP/1.1"})
}

func TestCase004_SpaceInTheTargetIsRefused(t *testing.T) {
	refusesLines(t, []string{"GET / a HTTP/1.1", "GET /a b HTTP/1.1", "GET / /b HTTP/1.1", "GET / HTTP/1.1 HTTP/1.1"})
}

func TestCase005_LineWithoutVersionIsRefused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.refuses(t, "GET /\r\n\r\n")
		r.refuses(t, "GET /\r\nHost: a\r\n\r\n")
	})
}

func TestCase006_Versions(t *testing.T) {
	t.Run("served as 1.1", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			for _, v := range []string{"HTTP/1.1", "HTTP/1.2", "HTTP/1.9"} {
				_, q := r.serves(t, "GET / "+v+"\r\nHost: a\r\n\r\n")
				require.Equal(t, "HTTP/1.1", q.proto)
			}
		})
	})
	t.Run("not supported", func(t *testing.T) {
		refusesLines(t, []string{"GET / HTTP/0.9", "GET / HTTP/2.0", "GET / HTTP/3.0", "GET / HTTP/9.1"}, 505)
	})
	t.Run("malformed", func(t *testing.T) {
		refusesLines(t, []string{"GET / HTTP/1.", "GET / HTTP/1", "GET / HTTP/01.1", "GET / HTTP/1.10",
			"GET / HTTP/4294967295.255", "GET / HTTP/\r\r1.1", "GET / http/1.1", "GET / HTTP /1.1",
			"GET / HTTPS/1.1", "GET / HTTP/1.1 ", "GET / HTTP/1.1x", "GET / HTTP/1,1", "GET / HTTP/11",
			"GET / HTTP/-1.1", "GET / HTTP/1.1\t", "GET / HTTP/+1.1", "GET / HTTP/1.+1", "GET / HTTP/"})
	})
}

const (
	h2Preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	h2Settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
)

func TestCase007_PrefaceOnThePlaintextPort(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, parts := range [][]string{{h2Preface + h2Settings}, {h2Preface[:3], h2Preface[3:20], h2Preface[20:], h2Settings}} {
			c := r.dial(t)
			for _, p := range parts {
				c.send(p)
				pause(5 * time.Millisecond)
			}
			_ = c.conn.SetReadDeadline(time.Now().Add(patience))
			frame := make([]byte, 9)
			for i := range frame {
				b, err := c.w.br.ReadByte()
				require.NoError(t, err)
				frame[i] = b
			}
			require.Equal(t, byte(4), frame[3], "the first frame must be SETTINGS: %x", frame)
			c.close()
		}
		for _, raw := range []string{"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "PRI / HTTP/2.0\r\n\r\n",
			"PRI * HTTP/1.1\r\n\r\n", "PRI * HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\nHost: a\r\n\r\nSM\r\n\r\n",
			"PRI / HTTP/1.1\r\nHost: a\r\n\r\n"} {
			t.Run(label(raw), func(t *testing.T) { r.refuses(t, raw, 400, 505) })
		}
	}, plainModes()...)
}

func TestCase008_MethodsAreTokens(t *testing.T) {
	t.Run("forwarded", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			for _, method := range []string{"PURGE", "M-SEARCH", "a!#$%&'*+-.^_`|~", "get", "X", "PRIX", "1"} {
				_, q := r.serves(t, method+" / HTTP/1.1\r\nHost: a\r\n\r\n")
				require.Equal(t, method, q.method)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		refusesLines(t, []string{"G(ET / HTTP/1.1", "GE\x00T / HTTP/1.1", "GE T / HTTP/1.1", `=":<> / HTTP/1.1`,
			" / HTTP/1.1", "GET: / HTTP/1.1", "G\x80T / HTTP/1.1", "GE\x7fT / HTTP/1.1", "GET/ / HTTP/1.1", " GET / HTTP/1.1"})
	})
}

func TestCase009_LongMethods(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		long := strings.Repeat("M", 32)
		_, q := r.serves(t, long+" / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, long, q.method)
		r.refuses(t, strings.Repeat("M", 32<<10)+" / HTTP/1.1\r\nHost: a\r\n\r\n")
		r.refusesExactly(t, strings.Repeat("M", 1<<20))
	})
}

func TestCase010_TargetLimitIs16KiB(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, n := range []int{8 << 10, 16<<10 - 1, 16 << 10} {
			target := "/" + strings.Repeat("a", n-1)
			_, q := r.serves(t, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Equal(t, target, q.target)
		}
		for _, n := range []int{16<<10 + 1, 1 << 20} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				r.refuses(t, "GET /"+strings.Repeat("a", n-1)+" HTTP/1.1\r\nHost: a\r\n\r\n", 414)
			})
		}
		t.Run("before its end", func(t *testing.T) {
			r.refusesExactly(t, "GET /"+strings.Repeat("a", 20<<10), 414)
		})
		t.Run("in the query", func(t *testing.T) {
			r.refuses(t, "GET /?"+strings.Repeat("a", 16<<10)+" HTTP/1.1\r\nHost: a\r\n\r\n", 414)
		})
	})
}

func TestCase011_AbsoluteTargetReplacesHost(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, c := range []struct{ target, sees, host string }{
			{"http://b.example/x?q", "/x?q", "b.example"},
			{"http://b.example:81/x?q", "/x?q", "b.example:81"},
			{"http://b.example", "/", "b.example"},
			{"http://b.example?q", "/?q", "b.example"},
			{"HTTP://b.example/x", "/x", "b.example"},
			{"http://[::1]:80/x", "/x", "[::1]:80"},
			{"http://b.example//c//d", "//c//d", "b.example"},
		} {
			t.Run(label(c.target), func(t *testing.T) {
				_, q := r.serves(t, "GET "+c.target+" HTTP/1.1\r\nHost: a\r\n\r\n")
				require.Equal(t, "GET "+c.sees+" HTTP/1.1", q.line)
				require.Equal(t, []string{c.host}, q.values("Host"))
			})
		}
	})
}

func TestCase012_UserinfoIsRefused(t *testing.T) {
	refusesLines(t, []string{"GET http://u:p@a/x HTTP/1.1", "GET http://u@a/x HTTP/1.1", "GET http://@a/x HTTP/1.1"})
}

func TestCase013_AbsoluteTargetWithoutHost(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		refusesLines(t, []string{"GET http:///x HTTP/1.1", "GET https://:80/ HTTP/1.1", "GET foo://a/x HTTP/1.1",
			"GET http:/x HTTP/1.1", "GET http:x HTTP/1.1", "GET http://a:b/ HTTP/1.1", "GET http://a\\b/ HTTP/1.1"})
	})
	t.Run("a path is not an authority", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			_, q := newRig(t, m).serves(t, "GET //evil/x HTTP/1.1\r\nHost: a\r\n\r\n")
			require.Equal(t, "//evil/x", q.target)
			require.Equal(t, []string{"a"}, q.values("Host"))
		})
	})
}

func TestCase014_TargetFormsThatAreNone(t *testing.T) {
	refusesLines(t, []string{"GET a HTTP/1.1", "GET admin/a HTTP/1.1", "GET a:80 HTTP/1.1", "GET * HTTP/1.1",
		"GET ?x HTTP/1.1", "OPTIONS */x HTTP/1.1", "OPTIONS *? HTTP/1.1", "GET \\x HTTP/1.1", "POST * HTTP/1.1"})
}

func TestCase015_FragmentIsRefused(t *testing.T) {
	refusesLines(t, []string{"GET /x#frag HTTP/1.1", "GET /x?q#frag HTTP/1.1", "GET /# HTTP/1.1", "GET http://a/x#f HTTP/1.1"})
}

func TestCase016_BytesOfTheTarget(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		var lines []string
		for b := 0; b <= 0x20; b++ {
			lines = append(lines, fmt.Sprintf("GET /a%cb HTTP/1.1", b), fmt.Sprintf("GET /a?%cb HTTP/1.1", b))
		}
		lines = append(lines, "GET /a\x7fb HTTP/1.1", "GET /a?\x7fb HTTP/1.1", `GET /a\b HTTP/1.1`, `GET \ HTTP/1.1`)
		refusesLines(t, lines)
	})
	t.Run("forwarded", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			c := r.dial(t)
			targets := []string{`/a?\b`}
			for _, b := range []byte("\"<>^`{|}") {
				targets = append(targets, "/a"+string([]byte{b})+"b", "/a?"+string([]byte{b})+"b")
			}
			for b := 0x80; b <= 0xff; b++ {
				targets = append(targets, "/a"+string([]byte{byte(b)})+"b")
			}
			for _, target := range targets {
				_, q := c.serves(t, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
				require.Equal(t, target, q.target)
			}
		})
	})
}

func TestCase017_Segments(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		q := request{nonce: nonce()}
		c.trickle(5*time.Millisecond, q.String())
		require.Equal(t, q.nonce, c.want(t, "GET", 200).get("X-Nonce"))
		a, b := request{nonce: nonce(), path: "/a"}, request{nonce: nonce(), path: "/b"}
		c.send(a.String() + b.String())
		require.Equal(t, a.nonce, c.want(t, "GET", 200).get("X-Nonce"))
		require.Equal(t, b.nonce, c.want(t, "GET", 200).get("X-Nonce"))
	})
}
