package conformance

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// Cases 93 and 185.
func TestCase093_InterimResponsesReachHTTP2Clients(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		goOn := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			c.send(earlyHints, "HTTP/1.1 102 Processing\r\nConnection: x\r\nX: 1\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n")
			<-goOn
			return c.send(ok("done"))
		})
		id := h.ask("GET", "/", true)
		h.until(t, "interim heads", func() bool { return len(h.stream(id).heads) == 3 })
		close(goOn)
		s := h.want(t, id, 200)
		require.Equal(t, "done", string(s.data))
		var seen []string
		for _, head := range s.heads {
			require.False(t, head.end)
			seen = append(seen, head.status+head.get("link"))
		}
		require.Equal(t, []string{"103</a.css>", "102", "103</b.css>", "200"}, seen)
		require.Empty(t, s.heads[1].values("x"), "named by Connection")
	})
}

func TestCase098_ExpectIsEndToEndOnHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		asked := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			close(asked)
			c.send("HTTP/1.1 100 Continue\r\n\r\n")
			return c.body(q) && c.send(ok("done"))
		})
		id := h.ask("POST", "/", false, "content-length", "5", "expect", "100-Continue")
		<-asked
		h.until(t, "100", func() bool { return len(h.stream(id).heads) == 1 })
		h.data(id, true, "hello")
		s := h.want(t, id, 200)
		require.Equal(t, "100", s.heads[0].status)
		q := r.U[1].last(t)
		require.Equal(t, "hello", string(q.body))
		require.Equal(t, []string{"100-continue"}, q.values("Expect"))

		h.want(t, h.ask("POST", "/", true, "expect", "nonsense"), 417)
		_, q = h.serve(t, r.U[1], "GET", "/", "expect", "100-continue")
		require.False(t, q.has("Expect"), "there is no body to wait for")
		s = h.want(t, h.ask("POST", "/down", false, "expect", "100-continue"), 502)
		require.Len(t, s.heads, 1, "no 100 out of nowhere")
	})
}

func TestCase099_RefusalInsteadOf100OnHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		r.U[1].play(func(c *uconn, q *message) bool {
			return c.send("HTTP/1.1 401 No\r\nX-U: x\r\nContent-Length: 2\r\n\r\nno") && false
		})
		id := h.ask("POST", "/", false, "content-length", "5", "expect", "100-continue")
		s := h.want(t, id, 401)
		require.Len(t, s.heads, 1)
		h.until(t, "reset", func() bool { return h.stream(id).reset != nil })
		require.Equal(t, http2.ErrCodeNo, *h.stream(id).reset)
		r.U[1].gone(t, 0)
		h.serve(t, r.U[1], "GET", "/")
	})
}

func TestCase108_BodyUntilCloseOnHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		r.U[1].play(replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\n\r\nhello"))
		s := h.want(t, h.ask("GET", "/", true), 200)
		require.Equal(t, "hello", string(s.data))
		require.Empty(t, s.final().values("content-length"), "none is invented")
		r.U[1].gone(t, 0)
	})
}

func TestCase121_ResponseTrailersOnHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n0\r\n"+
			"X-T: 1\r\nContent-Length: 99\r\nSet-Cookie: a\r\nX-Other: 2\r\n\r\n"),
			reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-T: 1\r\n\r\n"),
			reply("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n"))
		s := h.want(t, h.ask("GET", "/", true), 200)
		require.Equal(t, "hello", string(s.data))
		require.Equal(t, "X-T", s.final().get("trailer"))
		last := s.heads[len(s.heads)-1]
		require.Equal(t, [][2]string{{"x-t", "1"}, {"x-other", "2"}}, last.fields)
		require.True(t, last.end)
		s = h.want(t, h.ask("GET", "/", true), 200)
		require.Equal(t, []string{"HEADERS", "HEADERS END"}, s.log)
		s = h.want(t, h.ask("GET", "/", true), 200)
		require.Len(t, s.heads, 1)
	})
}

func TestCase128_BodilessResponsesEndWithTheirHead(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, c := range []struct{ method, answer, status, length string }{
			{"GET", "204 No Content\r\nX-U: x\r\n\r\n", "204", ""},
			{"GET", "304 Not Modified\r\nX-U: x\r\nContent-Length: 100\r\n\r\n", "304", "100"},
			{"HEAD", "200 OK\r\nX-U: x\r\nContent-Length: 5\r\n\r\n", "200", "5"},
			{"HEAD", "200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n", "200", ""},
			{"GET", "200 OK\r\nX-U: x\r\nContent-Length: 0\r\n\r\n", "200", "0"},
			{"GET", "205 Reset\r\nX-U: x\r\nContent-Length: 5\r\n\r\nhello", "205", "0"},
		} {
			r.U[1].play(reply("HTTP/1.1 " + c.answer))
			status, _ := strconv.Atoi(c.status)
			s := h.want(t, h.ask(c.method, "/", true), status)
			require.Equal(t, []string{"HEADERS END"}, s.log, "%+v", c)
			require.Equal(t, c.length, s.final().get("content-length"), "%+v", c)
		}
		h.want(t, h.ask("HEAD", "/down", true), 502)
		h.alive(t)
	})
}

// Cases 181 and 185: a 101 reaches nobody.
func TestCase181_ResponseFieldsAreThoseOfHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		r.U[1].play(reply("HTTP/1.1 200 OK\r\nX-U: x\r\nConnection: X-Secret, keep-alive\r\nX-SECRET: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n" +
			"Upgrade: h2c\r\nTE: x\r\nProxy-Authenticate: x\r\nServer: U\r\nETag: \"a\"\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Empty:\r\n" +
			"X-Bits: \x80\xff\r\nContent-Length: 2\r\n\r\nok"))
		s := h.want(t, h.ask("GET", "/", true), 200)
		head := s.final()
		require.Empty(t, head.values("x-secret"))
		require.Empty(t, head.values("proxy-authenticate"))
		require.Empty(t, head.values("content-type"), "none is invented")
		require.Equal(t, []string{"a=1", "b=2"}, head.values("set-cookie"))
		require.Equal(t, []string{""}, head.values("x-empty"))
		require.Equal(t, []string{"\x80\xff"}, head.values("x-bits"))
		require.Equal(t, []string{"2"}, head.values("content-length"))
		require.Equal(t, `"a"`, head.get("etag"))
		for _, bad := range []string{"X : 1", "X: a\r\n b", "X: a\x00b", "X\x80: 1", "X: a\nb"} {
			r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\n" + bad + "\r\nContent-Length: 0\r\n\r\n"))
			h.want(t, h.ask("GET", "/", true), 502)
		}
		r.U[1].play(reply("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))
		h.want(t, h.ask("GET", "/ws", true), 200)
		h.want(t, h.ask("GET", "/", true), 502)
	})
}

func TestCase181_LargeHeadsAreSplit(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		var fields strings.Builder
		for i := range 6 {
			fmt.Fprintf(&fields, "X-%d: %s\r\n", i, strings.Repeat(string(rune('a'+i)), 10000))
		}
		r.U[1].playAlways(reply("HTTP/1.1 200 OK\r\nX-U: x\r\n" + fields.String() + "Content-Length: 2\r\n\r\nok"))
		var ids []uint32
		for range 20 {
			ids = append(ids, h.ask("GET", "/", true))
		}
		for _, id := range ids {
			s := h.want(t, id, 200)
			require.Equal(t, strings.Repeat("f", 10000), s.final().get("x-5"))
			require.Equal(t, "ok", string(s.data))
		}
	})
}

func TestCase182_UpstreamTruncationIsAReset(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for name, play := range map[string]handler{
			"length":       replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 28)),
			"chunked":      replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n" + strings.Repeat("x", 28) + "\r\n"),
			"last CRLF":    replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n" + strings.Repeat("x", 28) + "\r\n0\r\n"),
			"bad chunk":    replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n" + strings.Repeat("x", 28) + "\r\nZ\r\n"),
			"reset":        replyThenReset("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 28)),
			"until close":  replyThenReset("HTTP/1.1 200 OK\r\nX-U: x\r\n\r\n" + strings.Repeat("x", 28)),
			"no body byte": replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 100\r\n\r\n"),
		} {
			r.U[1].play(play)
			id := h.ask("GET", "/", true)
			s := h.isReset(t, id)
			require.Equal(t, "200", s.final().status, name)
			if name != "no body byte" {
				require.Equal(t, int64(28), s.n, name)
			}
			for _, f := range s.log {
				require.NotContains(t, f, "END", name)
			}
		}
		h.alive(t)
	})
}

func TestCase158_EarlyRefusalOfAnUploadReachesHTTP2Clients(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		for _, reset := range []bool{false, true} {
			r := newRig(t, m)
			h := r.dialH2(t)
			page := strings.Repeat("p", 50<<10)
			r.U[1].play(func(c *uconn, q *message) bool {
				c.send("HTTP/1.1 413 Too Large\r\nX-U: x\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(page)) + "\r\n\r\n" + page)
				if reset {
					pause(quiet)
					c.reset()
				}
				return false
			})
			id := h.ask("POST", "/", false, "content-length", strconv.Itoa(100<<20))
			stop := make(chan struct{})
			go func() {
				defer close(stop)
				for i := 0; i < 7 && h.writeErr == nil; i++ { // less than the first window
					h.data(id, false, strings.Repeat("x", 4<<10))
				}
			}()
			s := h.want(t, id, 413)
			<-stop
			require.Equal(t, int64(len(page)), s.n)
			h.until(t, "reset behind the end", func() bool { return h.stream(id).reset != nil })
			require.Equal(t, http2.ErrCodeNo, *h.stream(id).reset)
			h.alive(t)
			require.Len(t, h.stream(id).log, len(s.log)+map[bool]int{true: 0, false: 1}[s.reset != nil], "one reset is enough")
			h.close()
		}
	})
}

func TestCase220_OwnRefusalOfAnUpload(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { threshold1(s); s.cfg.DefaultCooldown = 20 * time.Second })
		r.fail(t, "/", r.U[1])
		h := r.dialH2(t)
		heads := r.heads()
		id := h.ask("POST", "/", false)
		s := h.want(t, id, 503)
		after, err := strconv.Atoi(s.final().get("retry-after"))
		require.NoError(t, err)
		require.LessOrEqual(t, after, 20)
		require.GreaterOrEqual(t, after, 1)
		require.Equal(t, "upstream unavailable", string(s.data))
		h.until(t, "reset", func() bool { return h.stream(id).reset != nil })
		require.Equal(t, http2.ErrCodeNo, *h.stream(id).reset)
		s = h.want(t, h.ask("GET", "/", true), 503)
		require.Nil(t, s.reset)
		h.want(t, h.ask("GET", "/api", true), 200)
		require.Equal(t, heads+1, r.heads())
	})
}

func TestCase138_PiecesOfAnUploadArriveAtOnce(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, length := range []string{"10240", ""} {
			got := make(chan int, 100)
			r.U[1].play(func(c *uconn, q *message) bool {
				n := 0
				b := make([]byte, 4096)
				for n < 1024 {
					k, err := c.w.br.Read(b)
					n += k
					if err != nil {
						break
					}
				}
				got <- n
				c.reset()
				return false
			})
			var fields []string
			if length != "" {
				fields = []string{"content-length", length}
			}
			id := h.ask("POST", "/", false, fields...)
			h.data(id, false, strings.Repeat("x", 1024))
			select {
			case n := <-got:
				require.GreaterOrEqual(t, n, 1024)
			case <-time.After(patience):
				require.Fail(t, "1 KiB does not arrive")
			}
			h.want(t, id, 502)
		}
	})
}

// Cases 139 and 140.
func TestCase139_PiecesOfADownloadArriveAtOnce(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		more := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 20\r\n\r\n")
			<-more
			c.send("0123456789")
			<-more
			return c.send("0123456789")
		})
		id := h.ask("GET", "/", true)
		h.until(t, "the head", func() bool { return len(h.stream(id).heads) == 1 })
		more <- struct{}{}
		h.until(t, "the first half", func() bool { return h.stream(id).n == 10 })
		more <- struct{}{}
		require.Equal(t, int64(20), h.want(t, id, 200).n)
	})
}

func TestCase144_BodiesOfAllSizes(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		r.U[1].playAlways(func(c *uconn, q *message) bool {
			return c.body(q) && c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n", len(q.body)), string(q.body))
		})
		for _, n := range []int{0, 1, 4095, 4096, 4097, 16383, 16384, 16385, 32767, 32768, 32769, 65535, 65536, 65537, 300000, 1 << 20} {
			body := strings.Repeat("0123456789abcdef~", n/17+1)[:n]
			for _, fields := range [][]string{nil, {"content-length", strconv.Itoa(n)}} {
				id := h.ask("POST", "/", n == 0, fields...)
				h.upload(t, id, body)
				s := h.want(t, id, 200)
				require.Equal(t, int64(n), s.n)
				require.Equal(t, sha256.Sum256([]byte(body)), sha256.Sum256(s.data), "%d bytes", n)
			}
		}
	})
}
