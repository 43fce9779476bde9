package conformance

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// becomes502 plays a family of raw answers, each of which must become 502 and end its connection.
func becomes502(t *testing.T, answers []string) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		for _, a := range answers {
			t.Run(label(a), func(t *testing.T) { r.fails502(t, replyThenHold(a)) })
		}
	})
}

func TestCase105_BadLengthsOfResponses(t *testing.T) {
	var answers []string
	for _, v := range []string{"5\r\nContent-Length: 6", "5\r\nContent-Length: 5", "foo", "", "-1", "+5", "0x5", "5, 6", "5, 5", "5,", " 5 5",
		"9223372036854775808", "18446744073709551616", "5\x0b", "5;", "1e1"} {
		answers = append(answers, "HTTP/1.1 200 OK\r\nContent-Length: "+v+"\r\n\r\nhello")
	}
	becomes502(t, answers)
}

func TestCase106_LengthAndCodingInAResponse(t *testing.T) {
	becomes502(t, []string{"HTTP/1.1 200 OK\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + poison,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: 1\r\nContent-Length: 0\r\n\r\n0\r\n\r\n" + poison})
}

func TestCase107_CodingsOfResponses(t *testing.T) {
	var answers []string
	for _, v := range []string{"gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "identity", "", "chunked\r\nTransfer-Encoding: chunked",
		"chunked\r\nTransfer-Encoding: identity", "chunked\x0b", ",chunked", "xchunked", "chunked;q=1", "\"chunked\""} {
		answers = append(answers, "HTTP/1.1 200 OK\r\nTransfer-Encoding: "+v+"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	}
	becomes502(t, answers)
}

func TestCase108_BodyUpToTheEnd(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
			r.U[1].play(replyThenClose(proto + " 200 OK\r\nX-U: x\r\n\r\nhello"))
			resp := c.do(t, request{})
			require.Equal(t, "chunked", resp.framing)
			require.Equal(t, "hello", string(resp.body))
			conn := r.U[1].last(t).conn
			r.get(t, "/")
			require.NotEqual(t, conn, r.U[1].last(t).conn)
		}
	})
}

func TestCase109_BodyUpToAReset(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(replyThenReset("HTTP/1.1 200 OK\r\nX-U: x\r\n\r\nhello"))
		c := r.dial(t)
		c.send(request{}.String())
		c.truncated(t, "hello")
	})
}

// truncated asserts oracle O7: a response that was begun ends visibly short, after exactly the body.
func (c *client) truncated(t testing.TB, body string) *message {
	t.Helper()
	resp, err := c.response("GET")
	require.Error(t, err, "a cut body must not look complete")
	require.NotErrorIs(t, err, errSyntax, "got %q", clip(string(c.got)))
	require.NotNil(t, resp)
	require.Equal(t, 200, resp.status)
	require.True(t, errors.Is(err, io.ErrUnexpectedEOF) || isReset(err), "%v", err)
	require.Equal(t, body, string(resp.body))
	return resp
}

func TestCase110_StatusLines(t *testing.T) {
	var answers []string
	for _, line := range []string{"", "fo", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 s", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 123abc OK",
		"HTTP/2 200 OK", "HTTP/9.9 200", "ICY 200 OK", "200 OK", "GET / HTTP/1.1", "HTTP/1.1  200 OK", "HTTP/1.1\t200 OK", "http/1.1 200 OK",
		" HTTP/1.1 200 OK", "HTTP/1.1 -20 OK", "HTTP/1.1 +20 OK", "HTTP/1.1 099 OK", "HTTP/1.1 000 OK", "HTTP/1.1 200\x00OK", "HTTP/1.1 2 0 OK",
		"HTTP/1.1 200 O\rK", "HTTP/01.1 200 OK", "HTTP/1.10 200 OK", "HTTP/1. 200 OK", "HTTP/2.0 200 OK", "HTTP/0.9 200 OK"} {
		answers = append(answers, line+"\r\nContent-Length: 0\r\n\r\n")
	}
	becomes502(t, answers)
	t.Run("other protocols", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m, threshold1)
			for _, raw := range []string{"\x15\x03\x01\x00\x02\x02\x46", "SSH-2.0-OpenSSH_9.2p1\r\n", "220 mail ESMTP\r\n", "\x00\x00\x12\x04\x00\x00\x00\x00\x00", "fo"} {
				t.Run(label(raw), func(t *testing.T) { r.fails502(t, replyThenClose(raw)) })
			}
		})
	})
}

func TestCase111_FieldsOfResponses(t *testing.T) {
	var answers []string
	for _, line := range []string{"X : 1", "X\t: 1", "Content-Length : 0", "X: a\r\n b", "X: a\r\n\tb", "X: a\x00b", "X: a\rb", "X: a\nY: b", "nocolon",
		": x", ":", "X\xa0: 1", "X(: 1", "X\x80Y: 1", "X: a\x01b", "X: \x7f", "X: a\r", "Transfer-Encoding\r\n: chunked"} {
		answers = append(answers, "HTTP/1.1 200 OK\r\n"+line+"\r\nContent-Length: 0\r\n\r\n")
	}
	answers = append(answers, "HTTP/1.1 200 OK\r\n X: 1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	becomes502(t, answers)
}

func TestCase113_LargeHeadsOfResponses(t *testing.T) {
	becomes502(t, []string{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: 1\r\n", 10_000) + "Content-Length: 0\r\n\r\n"})
	t.Run("60 KiB", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\n" + strings.Repeat("X: "+strings.Repeat("x", 995)+"\r\n", 60) + "Content-Length: 2\r\n\r\nok"))
			resp := r.dial(t).do(t, request{})
			require.Len(t, resp.values("X"), 60)
			require.Equal(t, "ok", string(resp.body))
		})
	})
}

func TestCase114_TrickledHeadOfAResponse(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortTimeout)
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			for _, b := range []byte(ok(strings.Repeat("x", 1000))) {
				if !c.send(string([]byte{b})) {
					break
				}
				pause(20 * time.Millisecond)
			}
			return false
		})
		c := r.dial(t)
		own(t, c.do(t, request{}), 504, "")
		r.U[1].gone(t, 0)
	})
}

func TestCase115_EndBeforeOrInsideTheHead(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		for _, raw := range []string{"", "H", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r"} {
			t.Run(label(raw), func(t *testing.T) {
				r.fails502(t, replyThenClose(raw))
				r.fails502(t, replyThenReset(raw))
			})
		}
	})
}

func TestCase116_BodyShorterThanItsLength(t *testing.T) {
	body := "abcdefghijklmnopqrstuvwxyz01"
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for _, h := range []func(...string) handler{replyThenClose, replyThenReset} {
			v := r.verdictOf(t, "/", r.U[1], func() {
				r.U[1].play(h("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 100\r\n\r\n" + body))
				c := r.dial(t)
				defer c.close()
				c.send(request{}.String())
				require.Equal(t, "100", c.truncated(t, body).get("Content-Length"))
			})
			require.NotEqual(t, failure, v, "trouble after the head is no failure")
		}
	})
}

func TestCase117_BytesPastTheLength(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 8\r\n\r\nKEEP-ME!AND-DROP-ME"))
		c := r.dial(t)
		require.Equal(t, "KEEP-ME!", string(c.do(t, request{}).body))
		r.U[1].gone(t, 0)
		require.Equal(t, 200, c.do(t, request{}).status)
		require.Equal(t, 1, r.U[1].last(t).conn)
	})
}

// completeAnswers are answers behind which nothing may follow, by method.
var completeAnswers = []struct{ method, raw string }{
	{"GET", "HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"},
	{"GET", "HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 2\r\n\r\nok"},
	{"GET", "HTTP/1.1 204 No\r\nX-U: x\r\n\r\n"},
	{"GET", "HTTP/1.1 304 No\r\nX-U: x\r\n\r\n"},
	{"GET", "HTTP/1.1 304 No\r\nX-U: x\r\nContent-Length: 9\r\n\r\n"},
	{"HEAD", "HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 9\r\n\r\n"},
	{"GET", "HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
}

func TestCase118_PoisonBehindAnAnswer(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, a := range completeAnswers {
			for _, late := range []bool{false, true} {
				t.Run(label(fmt.Sprint(a.method, late, a.raw)), func(t *testing.T) {
					planted := make(chan struct{})
					r.U[1].play(func(c *uconn, q *message) bool {
						c.body(q)
						if !late {
							c.send(a.raw + poison)
							close(planted)
							return false
						}
						c.send(a.raw)
						pause(50 * time.Millisecond)
						c.send(poison)
						close(planted)
						return false
					})
					c := r.dial(t)
					defer c.close()
					c.do(t, request{m: a.method})
					conn := r.U[1].last(t).conn
					<-planted
					q := request{nonce: nonce()}
					require.Equal(t, q.nonce, c.do(t, q).get("X-Nonce"))
					require.NotEqual(t, conn, r.U[1].last(t).conn)
					r.U[1].gone(t, conn)
				})
			}
		}
	})
}

// TestCase118_BytesAtTheMomentOfTheNextRequest plants an unasked response on an idle connection while
// the next request is on its way. If the bytes were there before the request was sent they must never be
// taken for its answer. If the two crossed, nobody can tell them from an answer; then all that is asked
// is that the exchange stays in step.
func TestCase118_BytesAtTheMomentOfTheNextRequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		early := 0
		for i := range scaled(150) {
			first := make(chan struct{})
			var planted atomic.Bool
			r.U[1].play(func(c *uconn, q *message) bool {
				c.body(q)
				c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 0\r\n\r\n")
				<-first
				c.send("HTTP/1.1 200 OK\r\nX-U: planted\r\nContent-Length: 0\r\n\r\n")
				planted.Store(true)
				_, _ = c.w.br.Peek(1) // the request that crossed, or the end
				c.close()
				return false
			})
			require.Equal(t, 200, c.do(t, request{}).status)
			close(first)
			pause(time.Duration(i%40) * 5 * time.Microsecond)
			q := request{nonce: nonce()}
			before := planted.Load()
			resp := c.do(t, q)
			require.Equal(t, 200, resp.status)
			if before {
				early++
				require.Equal(t, q.nonce, resp.get("X-Nonce"))
			}
			q = request{nonce: nonce()}
			require.Equal(t, q.nonce, c.do(t, q).get("X-Nonce"))
		}
		t.Logf("in %d rounds the bytes were there first", early)
	})
}

func TestCase119_ChunkedAndCut(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, c := range []struct{ raw, body string }{{"5\r\nhel", "hel"}, {"5\r\nhello\r\n", "hello"}, {"5\r\nhello\r\n0\r\n", "hello"}, {"5\r\nhello", "hello"},
			{"5\r\nhello\r\n0\r\nX: 1\r\n", "hello"}, {"", ""}, {"5", ""}} {
			t.Run(label(c.raw), func(t *testing.T) {
				r.U[1].play(replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n" + c.raw))
				cl := r.dial(t)
				defer cl.close()
				cl.send(request{}.String())
				cl.truncated(t, c.body)
			})
		}
	})
}

func TestCase120_BadChunksInAResponse(t *testing.T) {
	bodies := []string{"5\r\nhelloX\r\n", "5\r\nhell\r\n0\r\n\r\n", "a\r\n0123456789\n0\r\n\r\n", "d\r\nabcdefghijklm\r\n\r\n0\r\n\r\n", "0\r\n X: 1\r\n\r\n", "0\r\nnocolon\r\n\r\n"}
	for _, s := range badSizes {
		bodies = append(bodies, s+"hello\r\n0\r\n\r\n")
	}
	mebi := fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", 1<<20, strings.Repeat("m", 1<<20))
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		for _, b := range bodies {
			t.Run(label(b), func(t *testing.T) {
				r.closeCircuit(t)
				r.U[1].play(replyThenHold(mebi + b + poison))
				c := r.dial(t)
				defer c.close()
				c.send(request{}.String())
				resp, err := c.response("GET")
				require.Error(t, err, "a broken body must not look complete")
				require.NotErrorIs(t, err, errSyntax)
				require.GreaterOrEqual(t, resp.bodyLen, int64(1<<20))
				require.LessOrEqual(t, resp.bodyLen, int64(1<<20+13))
				r.U[1].gone(t, r.U[1].last(t).conn)
				require.Zero(t, r.state(r.U[1]), "trouble after the head is no failure")

				r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b + poison))
				c = r.dial(t)
				defer c.close()
				c.send(request{}.String())
				resp, err = c.response("GET")
				require.True(t, err != nil || resp.status == 502, "%q", resp.line)
				require.NotErrorIs(t, err, errSyntax)
			})
		}
	})
}

func TestCase121_TrailersOfResponses(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		const head = "HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n"
		const all = "X-T: 1\r\nContent-Length: 9\r\nTransfer-Encoding: x\r\nSet-Cookie: a=b\r\nHost: b\r\nContent-Type: x/y\r\nConnection: close\r\nKeep-Alive: 1\r\nX-T: 2\r\n"
		for _, announce := range []string{"", "Trailer: X-T\r\n"} {
			r.U[1].play(reply(head + announce + "\r\n2\r\nok\r\n0\r\n" + all + "\r\n"))
			resp := c.do(t, request{})
			require.Equal(t, "ok", string(resp.body))
			var seen []string
			for _, f := range resp.trailers {
				seen = append(seen, f.line)
			}
			require.Equal(t, []string{"X-T: 1", "X-T: 2"}, seen)
			require.False(t, resp.has("X-T"))
			require.False(t, resp.has("Set-Cookie"))
		}
		r.U[1].play(reply(head + "\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"))
		old := r.dial(t)
		old.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
		resp := old.want(t, "GET", 200)
		require.Equal(t, "ok", string(resp.body))
		old.closedByPeer(t)
	})
}

func TestCase122_ResetContentHasNoBody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, raw := range []string{"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Content-Length: 0\r\n\r\n"} {
			r.U[1].play(reply("HTTP/1.1 205 Reset\r\nX-U: x\r\n" + raw))
			resp := c.do(t, request{})
			require.Equal(t, 205, resp.status)
			require.Equal(t, []string{"0"}, resp.values("Content-Length"))
			q := request{nonce: nonce()}
			require.Equal(t, q.nonce, c.do(t, q).get("X-Nonce"))
		}
	})
}

func TestCase124_ReasonPhrases(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, reason := range []string{"", "\x80\xff", strings.Repeat("r", 32<<10), "a b\tc"} {
			r.U[1].play(reply("HTTP/1.1 299 " + reason + "\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"))
			require.Equal(t, 299, c.do(t, request{}).status)
		}
	})
}
