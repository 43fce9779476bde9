package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

func TestCase172_AuthorityBecomesHost(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, fields := range [][]string{
			{":method", "GET", ":scheme", "http", ":authority", "a:8443", ":path", "/"},
			{":method", "GET", ":scheme", "http", ":authority", "a:8443", ":path", "/", "host", "a:8443"},
			{":method", "GET", ":scheme", "http", ":path", "/", "host", "a:8443"},
		} {
			h.want(t, h.open(true, fields...), 200)
			require.Equal(t, []string{"a:8443"}, r.U[1].last(t).values("Host"), "%q", fields)
			require.Equal(t, "Host: a:8443", r.U[1].last(t).fields[0].line)
		}
		before := r.heads()
		for _, fields := range [][]string{
			{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/", "host", "b"},
			{":method", "GET", ":scheme", "http", ":path", "/"},
			{":method", "GET", ":scheme", "http", ":path", "/", "host", "a", "host", "b"},
			{":method", "GET", ":scheme", "http", ":path", "/", "host", ""},
		} {
			h.malformed(t, h.open(true, fields...))
		}
		require.Len(t, r.seenBehind(nil), before+4, "only the requests that prove the connection alive")
	})
}

func TestCase173_ConnectionSpecificFieldsAreMalformed(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, f := range [][2]string{{"connection", "close"}, {"connection", "x-drop"}, {"keep-alive", "5"}, {"proxy-connection", "close"},
			{"transfer-encoding", "chunked"}, {"transfer-encoding", "gzip"}, {"upgrade", "h2c"}, {"upgrade", "websocket"},
			{"te", "gzip"}, {"te", "trailers, gzip"}, {"te", ""}} {
			h.malformed(t, h.ask("GET", "/mal", true, f[0], f[1]))
		}
		_, q := h.serve(t, r.U[1], "GET", "/", "te", "trailers")
		require.False(t, q.has("TE"))
		for _, q := range r.allHeads() {
			require.NotEqual(t, "/mal", q.target)
		}
	})
}

func TestCase174_BodyUnlikeItsLengthIsMalformed(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		post := func(length ...string) uint32 {
			var fields []string
			for _, l := range length {
				fields = append(fields, "content-length", l)
			}
			return h.ask("POST", "/mal", false, fields...)
		}
		cases := map[string]func() uint32{
			"more in one frame": func() uint32 { id := post("1"); h.data(id, true, "A"+smuggled); return id },
			"more, end apart":   func() uint32 { id := post("1"); h.data(id, false, "A"+smuggled); h.data(id, true, ""); return id },
			"rest later": func() uint32 {
				id := post("1")
				h.data(id, false, "A")
				pause(quiet)
				h.data(id, true, smuggled)
				return id
			},
			"less":               func() uint32 { id := post("100"); h.data(id, true, "A"); return id },
			"less, by trailers":  func() uint32 { id := post("2"); h.data(id, false, "A"); h.headers(id, true, "x-t", "1"); return id },
			"none":               func() uint32 { return h.ask("POST", "/mal", true, "content-length", "3") },
			"zero with data":     func() uint32 { id := post("0"); h.data(id, true, "A"); return id },
			"zero, data later":   func() uint32 { id := post("0"); pause(quiet); h.data(id, true, "A"); return id },
			"two":                func() uint32 { id := post("1", "2"); h.data(id, true, "A"); return id },
			"two equal":          func() uint32 { id := post("1", "1"); h.data(id, true, "A"); return id },
			"list":               func() uint32 { id := post("1,1"); h.data(id, true, "A"); return id },
			"empty":              func() uint32 { id := post(""); h.data(id, true, "A"); return id },
			"sign":               func() uint32 { id := post("+1"); h.data(id, true, "A"); return id },
			"more than an int64": func() uint32 { id := post("9223372036854775808"); h.data(id, true, "A"); return id },
		}
		for name, play := range cases {
			before, whole := r.allHeads(), len(r.U[1].requests())
			id := play()
			h.malformed(t, id)
			require.Equal(t, whole+1, len(r.U[1].requests()), "%s: a malformed request was completed", name)
			for _, q := range r.seenBehind(before) {
				if q.target == "/mal" {
					r.U[1].gone(t, q.conn)
				}
			}
		}
	})
}

func TestCase174_ProperLengthIsKept(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		h := r.dialH2(t)
		id := h.ask("POST", "/", false, "content-length", "5")
		h.data(id, false, "he")
		h.data(id, false, "llo")
		h.data(id, true, "")
		h.want(t, id, 200)
		q := r.U[1].last(t)
		require.Equal(t, "hello", string(q.body))
		require.Equal(t, []string{"5"}, q.values("Content-Length"))
		id = h.ask("POST", "/", false, "content-length", "0")
		h.data(id, true, "")
		h.want(t, id, 200)
		require.Equal(t, []string{"0"}, r.U[1].last(t).values("Content-Length"))
		id = h.ask("POST", "/", false)
		h.data(id, true, "hello")
		h.want(t, id, 200)
		q = r.U[1].last(t)
		require.Equal(t, "hello", string(q.body))
		require.Equal(t, "chunked", q.framing)
		require.Len(t, r.U[1].connections(), 1, "one connection serves all")
	})
}

func TestCase175_EndOfStreamWithTheHeadMeansNoBody(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			h.want(t, h.ask(method, "/", true), 200)
			q := r.U[1].last(t)
			require.NotEqual(t, "chunked", q.framing, method)
			require.Zero(t, q.bodyLen)
			if method == "POST" || method == "PUT" {
				require.Equal(t, []string{"0"}, q.values("Content-Length"), method)
			} else {
				require.False(t, q.has("Content-Length"), method)
			}
		}
	})
}

func TestCase176_NamesThatAreNoNamesAreMalformed(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		names := []string{"X-Upper", "x y", "x\ty", "x:y", "x\x00y", "x\x7fy", "x\x80y", "x\xffy", "", " x", "x ", "x\r\ny", "content-length\xa0", "transfer-encoding "}
		for c := range 0x21 {
			names = append(names, "x"+string([]byte{byte(c)})+"y")
		}
		for _, name := range names {
			h.malformed(t, h.ask("GET", "/mal", true, name, "1"))
		}
		for _, q := range r.allHeads() {
			require.NotEqual(t, "/mal", q.target)
		}
	})
}

func TestCase177_ValuesThatAreNoValuesAreMalformed(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, value := range []string{"a\r\nx: y", "a\nb", "a\rb", "a\x00b", " a", "a ", "\ta", "a\t", " ", "a\x01b", "a\x7fb", "a\r\n\r\n" + smuggled} {
			h.malformed(t, h.ask("GET", "/mal", true, "x-v", value))
			h.malformed(t, h.ask("GET", "/mal", true, "cookie", "a=1", "cookie", value))
		}
		for _, q := range r.allHeads() {
			require.NotEqual(t, "/mal", q.target)
		}
		_, q := h.serve(t, r.U[1], "GET", "/", "x-v", "a\tb \x80\xff", "x-e", "", "x-r", "1", "x-o", "2", "x-r", "3")
		require.Equal(t, []string{"a\tb \x80\xff"}, q.values("x-v"))
		require.Equal(t, []string{""}, q.values("x-e"))
		require.Equal(t, []string{"1", "3"}, q.values("x-r"))
		require.Contains(t, strings.Join(q.lines(), "|"), "x-r: 1|x-o: 2|x-r: 3", "the order is kept")
	})
}

func TestCase178_PseudoFieldsThatAreMalformed(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		change := func(name, value string) []string {
			f := pseudo("GET", "/mal")
			for i := 0; i < len(f); i += 2 {
				if f[i] == name {
					f[i+1] = value
				}
			}
			return f
		}
		var heads [][]string
		for _, path := range []string{"/x HTTP/1.1\r\nX: y", "/a b", "/a HTTP/1.1", "/ HTTP/1.0", "a", "", " \t", "*", "http://evil/x", "https://a/", "/x#f", "?x", "a:80", "/\x00", "/\x1f", "/\x7f", "/\t"} {
			heads = append(heads, change(":path", path))
		}
		for _, method := range []string{"GET /evil HTTP/1.1\r\n", "GET /evil", "GET?", "", "G(ET", "GET ", " GET", "GE\x00T", strings.Repeat("A", 200)} {
			heads = append(heads, change(":method", method))
		}
		for _, scheme := range []string{"http://x/?", "", "HTTP/1.1", "ftp"} {
			heads = append(heads, change(":scheme", scheme))
		}
		for _, authority := range []string{"a\r\nX: y", "u:p@a", "a/b", "", "a b", "a?b", "a#b", "a:99999", "a,b"} {
			heads = append(heads, change(":authority", authority))
		}
		heads = append(heads,
			append(pseudo("GET", "/mal"), ":path", "/other"), append(pseudo("GET", "/mal"), ":status", "200"),
			append(pseudo("GET", "/mal"), ":unknown", "1"), append([]string{"x-early", "1"}, pseudo("GET", "/mal")...),
			append(pseudo("GET", "/mal"), ":protocol", "websocket"), append(pseudo("GET", "/mal"), "x", "1", ":late", "1"),
			pseudo("GET", "/mal")[2:], pseudo("GET", "/mal")[:6], append(pseudo("GET", "/mal")[:2], pseudo("GET", "/mal")[4:]...))
		for _, head := range heads {
			h.malformed(t, h.open(true, head...))
		}
		for _, q := range r.allHeads() {
			require.Equal(t, "/alive", q.target)
		}
		_, q := h.serve(t, r.U[1], "GET", "/\"<>^`{|}\x80\xff%41?a\\b%zz")
		require.Equal(t, "/\"<>^`{|}\x80\xff%41?a\\b%zz", q.target)
		h.want(t, h.ask("OPTIONS", "*", true), 200)
		require.Equal(t, "OPTIONS * HTTP/1.1", r.U[1].last(t).line)
	})
}

func TestCase178_PathsThatNoRouteMayHaveGet400(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		for _, path := range []string{"/api/../x", "/%2e%2e/x", "/a%00", "/a\\b", "/%zz", "//api/v1", "/%61pi/v1"} {
			ownH2(t, h.want(t, h.ask("GET", path, true), 400))
		}
		require.Zero(t, r.heads())
		h.want(t, h.ask("GET", "/"+strings.Repeat("a", 16<<10-1), true), 200)
		h.want(t, h.ask("GET", "/"+strings.Repeat("a", 16<<10), true), 414)
		h.alive(t)
	})
}

func TestCase179_CookieCrumbsBecomeOneLine(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		_, q := h.serve(t, r.U[1], "GET", "/", "cookie", "a=1", "x-between", "1", "cookie", "b=2", "cookie", "c=3")
		require.Equal(t, []string{"a=1; b=2; c=3"}, q.values("Cookie"))
		_, q = h.serve(t, r.U[1], "GET", "/", "cookie", "a=1; b=2")
		require.Equal(t, []string{"a=1; b=2"}, q.values("Cookie"))
	})
}

func TestCase180_TrailersAreCheckedAndDropped(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		id := h.ask("POST", "/", false, "trailer", "x-t")
		h.data(id, false, "hello")
		h.headers(id, true, "x-t", "1", "authorization", "z", "content-length", "99")
		h.want(t, id, 200)
		q := r.U[1].last(t)
		require.Equal(t, "hello", string(q.body))
		require.False(t, q.has("x-t"))
		require.False(t, q.has("Trailer"))
		for name, trailer := range map[string][]string{"name": {"X-T", "1"}, "value": {"x-t", "a\nb"}, "pseudo": {":path", "/x"}} {
			id = h.ask("POST", "/mal", false)
			h.data(id, false, "hello")
			h.headers(id, true, trailer...)
			t.Log(name)
			h.malformed(t, id)
		}
		id = h.ask("POST", "/mal", false)
		h.data(id, false, "hello")
		h.headers(id, false, "x-t", "1")
		h.malformed(t, id)
		for _, q := range r.U[1].requests() {
			require.NotEqual(t, "/mal", q.target)
		}
	})
}

func TestCase087_ConnectIs501(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		id := h.open(false, ":method", "CONNECT", ":authority", "a:443")
		h.data(id, false, smuggled)
		h.want(t, id, 501)
		h.want(t, h.open(true, ":method", "CONNECT", ":authority", "a:443"), 501)
		require.Zero(t, r.heads())
		for _, fields := range [][]string{
			{":method", "CONNECT", ":authority", "a:443", ":path", "/", ":scheme", "https"},
			{":method", "CONNECT", ":authority", "a"},
			{":method", "CONNECT"},
			{":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/ws", ":authority", "a"},
		} {
			h.malformed(t, h.open(true, fields...))
		}
	})
}

func TestCase080_ForwardingFieldsAreTheProxysOwn(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		proto := map[bool]string{true: "https", false: "http"}[m.tls]
		_, q := h.serve(t, r.U[1], "GET", "/", "x-forwarded-for", "1.2.3.4", "x-forwarded-for", "5.6.7.8", "x_forwarded_for", "9",
			"x-forwarded-proto", "gopher", "forwarded", "for=x", "x-real-ip", "1", "proxy", "x", "proxy-authorization", "y",
			"via", "1.1 other", "transfer_encoding", "chunked", "content.length", "9", "max-forwards", "3")
		require.Equal(t, []string{"127.0.0.1"}, q.values("X-Forwarded-For"))
		require.Equal(t, []string{proto}, q.values("X-Forwarded-Proto"))
		require.Equal(t, []string{"1.1 other", "1.1 ferryman"}, q.values("Via"))
		require.Equal(t, []string{"3"}, q.values("max-forwards"))
		for _, name := range []string{"x_forwarded_for", "forwarded", "x-real-ip", "transfer_encoding", "content.length", "Connection"} {
			require.False(t, q.has(name), name)
		}
	})
}

func TestCase074_MaxForwardsAndLoops(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		s := h.want(t, h.ask("OPTIONS", "/", true, "max-forwards", "0"), 200)
		require.Empty(t, s.final().get("x-u"))
		_, q := h.serve(t, r.U[1], "OPTIONS", "/", "max-forwards", "3")
		require.Equal(t, []string{"2"}, q.values("Max-Forwards"))
		h.want(t, h.ask("GET", "/", true, "via", strings.TrimSuffix(strings.Repeat("1.1 ferryman, ", 10), ", ")), 508)
	})
}

func TestCase030_HeadLimits(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		var fields []string
		for i := range 400 {
			fields = append(fields, fmt.Sprintf("x-%d", i), "1")
		}
		h.want(t, h.ask("GET", "/", true, fields[:2*250]...), 200)
		h.want(t, h.ask("GET", "/", true, fields...), 431)
		h.want(t, h.ask("GET", "/", true, "x", strings.Repeat("a", 60<<10)), 200)
		h.want(t, h.ask("GET", "/", true, "x", strings.Repeat("a", 66<<10)), 431)
		h.want(t, h.ask("GET", "/", true, "x", strings.Repeat("a", 40<<10), "y", strings.Repeat("b", 40<<10)), 431)
		require.Equal(t, 2, r.whole())
		h.alive(t)
		h.ask("GET", "/", true, "x", strings.Repeat("~", 1<<20))
		require.NotEqual(t, http2.ErrCodeNo, h.gone(t, patience).code, "%s", h)
		require.Equal(t, 3, r.whole())
	})
}

func TestCase007_PriorKnowledgeByteByByte(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialRawH2(t)
		go h.read() // answers nothing: that would get between the bytes
		id := uint32(1)
		block := string(h.block(pseudo("GET", "/")...))
		h.trickle(time.Millisecond, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+
			"\x00\x00"+string(rune(len(block)))+"\x01\x05\x00\x00\x00\x01"+block)
		h.want(t, id, 200)
		h.note(func() { h.greeted = true })
		h.id = 3
		h.alive(t)
	}, plainModes()...)
}

func TestCase007_PrefaceBehindARequestIsRefused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, apart := range []bool{false, true} {
			c := r.dial(t)
			if apart {
				c.do(t, request{})
				c.send(http2.ClientPreface)
			} else {
				c.send(request{}.String() + http2.ClientPreface)
				c.want(t, "GET", 200)
			}
			c.refused(t, 505)
		}
		require.Equal(t, 2, r.whole())
	}, plainModes()...)
}
