package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refusesFraming refuses POSTs whose framing fields are given, each with a payload that hides a request.
func refusesFraming(t *testing.T, fields []string) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, f := range fields {
			t.Run(label(f), func(t *testing.T) {
				r.refuses(t, "POST /p HTTP/1.1\r\nHost: a\r\n"+f+"\r\n\r\n0\r\n\r\n")
				r.refuses(t, "POST /p HTTP/1.1\r\nHost: a\r\n"+f+"\r\n\r\nhello")
			})
		}
	})
}

func TestCase035_LengthWithCodingIsRefused(t *testing.T) {
	const cl, te = "Content-Length: 5", "Transfer-Encoding: chunked"
	refusesFraming(t, []string{cl + "\r\n" + te, te + "\r\n" + cl, cl + "\r\nX: 1\r\nY: 2\r\n" + te,
		te + "\r\nX: 1\r\n" + cl, "Content-Length: 0\r\n" + te, te + "\r\nContent-Length: 0",
		"Content-Length: 40\r\n" + te, "content-length: 5\r\ntransfer-encoding: identity",
		"Content-Length: 5\r\nTransfer-Encoding: ", "Content-Length: \r\n" + te})
}

func TestCase036_RepeatedLengthIsRefused(t *testing.T) {
	var fields []string
	for _, v := range []string{"5, 5", "5,6", "5,", ",5", "0,", "5 ,5", ", 5", "5, ", "0, 0"} {
		fields = append(fields, "Content-Length: "+v)
	}
	for _, v := range [][2]string{{"5", "6"}, {"6", "5"}, {"5", "5"}, {"0", "0"}, {"0", "5"}, {"", "5"}} {
		fields = append(fields, "Content-Length: "+v[0]+"\r\nContent-Length: "+v[1],
			"Content-Length: "+v[0]+"\r\nX: 1\r\ncontent-length: "+v[1])
	}
	refusesFraming(t, fields)
}

func TestCase037_LengthIsDigits(t *testing.T) {
	var fields []string
	for _, v := range []string{"", " ", "+5", "-5", "-1", "0x5", "5x", "1_0", "1e1", "5.0", "5 5", "0 5", "\xd9\xa5",
		"5\x00", "5\x0b", `"5"`, "5;", "5\xa0", "\x0b5", "chunked", "05 5", "\xef\xbc\x95", "0b1", "0o5", "inf"} {
		fields = append(fields, "Content-Length: "+v)
	}
	refusesFraming(t, fields)
}

func TestCase038_LeadingZerosAndOverflow(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, v := range []string{"005", "0000000000000000005"} {
			_, q := r.serves(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+v+"\r\n\r\nhello")
			require.Equal(t, []string{"5"}, q.values("Content-Length"))
			require.Equal(t, "hello", string(q.body))
		}
		_, q := r.serves(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 010\r\n\r\n0123456789")
		require.Equal(t, "0123456789", string(q.body), "never octal")
		for _, v := range []string{"00000000000000000005", strings.Repeat("0", 1000) + "5", "9223372036854775808",
			"18446744073709551616", "18446744073709551621", "9999999999999999999", "99999999999999999999"} {
			t.Run(v[:min(len(v), 30)], func(t *testing.T) {
				r.refuses(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+v+"\r\n\r\nhello")
			})
		}
	})
}

func TestCase039_BodiesOfUnusualMethods(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		c := newRig(t, m).dial(t)
		for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS", "PURGE"} {
			_, q := c.serves(t, method+" / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
			require.Equal(t, []string{"5"}, q.values("Content-Length"))
			require.Equal(t, "hello", string(q.body))
			_, q = c.serves(t, method+" / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
			require.Equal(t, "hello", string(q.body))
		}
	})
}

func TestCase040_NoFramingIsNoBody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		a, b := request{m: "POST", nonce: nonce()}, request{nonce: nonce()}
		c.send(a.String() + b.String())
		require.Equal(t, a.nonce, c.want(t, "POST", 200).get("X-Nonce"))
		require.Equal(t, b.nonce, c.want(t, "GET", 200).get("X-Nonce"))
		q := r.U[1].requests()
		require.Len(t, q, 2)
		require.Zero(t, q[0].bodyLen)
		require.False(t, q[0].has("Transfer-Encoding"))
	})
}

func TestCase048_CodingsOtherThanChunked(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		var fields []string
		for _, v := range []string{"identity", "gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "chunked, identity",
			"identity, chunked", "chunked;q=1", "chunked;foo", `"chunked"`, "'chunked'", "xchunked", "chunk", "chunked,", ",chunked",
			"", "chunked\x0b", "\x0bchunked", "chunked\xa0", "\xa0chunked", "chunked chunked", "chunked\x00", "chun ked", ", chunked",
			"trailers", "deflate"} {
			fields = append(fields, "Transfer-Encoding: "+v)
		}
		refusesFraming(t, fields)
	})
	t.Run("accepted", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			for _, v := range []string{"cHuNkEd", " chunked", "\tchunked", "chunked ", "chunked\t", "  chunked \t ", "CHUNKED"} {
				_, q := r.serves(t, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:"+v+"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
				require.Equal(t, "hello", string(q.body))
			}
		})
	})
}

func TestCase049_TwoCodingLinesAreRefused(t *testing.T) {
	refusesFraming(t, []string{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nX: 1\r\ntransfer-encoding: x",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: "})
}

func TestCase050_HTTP10PostWithoutLength(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		c.send("POST / HTTP/1.0\r\nHost: a\r\n\r\n" + smuggled)
		c.want(t, "POST", 200)
		c.closedByPeer(t)
		require.Zero(t, r.U[1].last(t).bodyLen)
		require.Equal(t, 1, r.heads())
		// RFC 9112 6.1: a coding in an HTTP/1.0 message is faulty framing.
		r.refuses(t, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	})
}

func TestCase051_BodyCutByFin(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for _, raw := range []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello", chunked("5\r\nhello\r\n"),
			chunked("5\r\nhel"), chunked("5\r\nhello\r\n0\r\n"), chunked("5\r\nhello\r\n0\r\nX: 1\r\n")} {
			t.Run(label(raw), func(t *testing.T) {
				v := r.verdictOf(t, "/", r.U[1], func() {
					heads, whole := len(r.U[1].started()), r.whole()
					c := r.dial(t)
					defer c.close()
					c.send(raw)
					q := r.U[1].awaitStarted(t, heads+1)
					c.fin()
					c.refused(t, 400)
					r.U[1].gone(t, q.conn)
					require.Equal(t, whole, r.whole())
				})
				require.Equal(t, neutral, v)
			})
		}
	})
}

func TestCase052_StalledBody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for _, raw := range []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello", chunked("5\r\nhello\r\n"), chunked("5\r\nh")} {
			t.Run(label(raw), func(t *testing.T) {
				v := r.verdictOf(t, "/", r.U[1], func() {
					r.during(t, soonIdle, func() {
						heads := len(r.U[1].started())
						c := r.dial(t)
						defer c.close()
						c.send(raw)
						q := r.U[1].awaitStarted(t, heads+1)
						c.refused(t, 400)
						r.U[1].gone(t, q.conn)
					})
				})
				require.Equal(t, neutral, v)
			})
		}
	})
}

// Cases 53 and 54.
func TestCase053And054_PipelinedBodies(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, row := range [][]request{
			{{m: "POST", body: "hello", nonce: nonce()}, {nonce: nonce()}},
			{{m: "POST", body: "hello", nonce: nonce()}, {m: "POST", body: "worlds", nonce: nonce()}},
			{{m: "POST", fields: []string{"Content-Length: 0"}, nonce: nonce()}, {m: "POST", body: "x", nonce: nonce()}},
			{{m: "POST", chunks: []string{"a", "bc"}, nonce: nonce()}, {m: "PUT", chunks: []string{"d"}, nonce: nonce()}, {nonce: nonce()}},
		} {
			c := r.dial(t)
			var all string
			for _, q := range row {
				all += q.String()
			}
			c.send(all)
			for _, q := range row {
				require.Equal(t, q.nonce, c.want(t, q.method(), 200).get("X-Nonce"))
				require.Equal(t, q.body+strings.Join(q.chunks, ""), string(r.U[1].withNonce(t, q.nonce).body))
			}
			c.close()
		}
	})
}

func TestCase055_EveryCutInTwo(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, q := range []request{{m: "POST", chunks: []string{"one", "twos", "three"}}, {m: "POST", body: "hello"}, {path: "/x?y"}} {
			q.nonce = nonce()
			s := q.String()
			for i := 1; i < len(s); i++ {
				c.send(s[:i])
				pause(time.Millisecond)
				c.send(s[i:])
				require.Equal(t, q.nonce, c.want(t, q.method(), 200).get("X-Nonce"), "cut at %d", i)
				require.Equal(t, q.body+strings.Join(q.chunks, ""), string(r.U[1].last(t).body), "cut at %d", i)
			}
		}
	})
}

func TestCase056_BytesBehindAClosingRequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, q := range []request{{m: "POST", body: "hello", fields: []string{"Connection: close"}}, {fields: []string{"Connection: close"}},
			{m: "POST", chunks: []string{"hello"}, fields: []string{"Connection: close"}}} {
			before := r.whole()
			c := r.dial(t)
			c.send(q.String() + smuggled)
			require.Equal(t, []string{"close"}, c.want(t, q.method(), 200).values("Connection"))
			c.closedByPeer(t)
			require.Equal(t, before+1, r.whole())
		}
	})
}

func TestCase057_AliasOfAFramingFieldIsDropped(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, alias := range []string{"Transfer_Encoding: chunked", "Transfer.Encoding: chunked", "transfer_encoding: chunked",
			"Content_Length: 5", "Content.Length: 5"} {
			_, q := r.serves(t, "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n"+alias+"\r\n\r\n0\r\n\r\n"+smuggled)
			require.Equal(t, int64(40), q.bodyLen)
			require.Equal(t, "length", q.framing)
			name, _, _ := strings.Cut(alias, ":")
			require.False(t, q.has(name), "%q", q.lines())
			r.get(t, "/")
		}
	})
}
