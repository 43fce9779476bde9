package h1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

func TestConnection_NamedFieldsAreMarked(t *testing.T) { // 65, 66, 69
	for _, c := range []struct{ options, dropped string }{
		{"X-Drop", "X-Drop"},
		{"x-drop", "X-Drop X-DROP"},
		{"close, X-Drop, x-drop2", "X-Drop X-Drop2"},
		{", ,X-Drop,,", "X-Drop"},
		{"\tX-Drop\t,\tX-Drop2\t", "X-Drop X-Drop2"},
		{"X-Forwarded-For, x-forwarded-proto, Via", "X-Forwarded-For X-Forwarded-Proto Via"},
		{"TE, Trailer, Upgrade2", "TE Trailer Upgrade2"},
		{"Transfer_Encoding", "Transfer_Encoding"},
		{"close", ""},
		{"", ""},
		{",,,", ""},
	} {
		var lines strings.Builder
		for _, name := range []string{"X-Drop", "X-DROP", "X-Drop2", "X-Keep", "X-Forwarded-For", "X-Forwarded-Proto", "Via",
			"TE", "Trailer", "Upgrade2", "Transfer_Encoding", "X-Dro", "X-Drop22"} {
			fmt.Fprintf(&lines, "%s: 1\r\n", name)
		}
		for _, input := range []string{with("Connection: "+c.options+"\r\n", lines.String()),
			with(lines.String(), "connection: "+c.options+"\r\n")} {
			accepts(t, input)
			r := request(t, input)
			var want []string
			for n := range strings.FieldsSeq(c.dropped) {
				want = append(want, strings.ToLower(n))
			}
			for i := range r.Fields {
				f := &r.Fields[i]
				name := strings.ToLower(string(r.Name(f)))
				require.Equal(t, contains(want, name), f.Kind == h1.Dropped, "%q: %s", c.options, name)
			}
		}
	}
}

func contains(list []string, s string) bool {
	return slices.Contains(list, s)
}

func TestConnection_SeveralLinesAreOneList(t *testing.T) { // 66
	r := request(t, with("A: 1\r\n", "Connection: a\r\n", "B: 1\r\n", "Connection:\r\n", "CONNECTION: b, close\r\n", "C: 1\r\n"))
	require.Equal(t, h1.Dropped, r.Fields[1].Kind)
	require.Equal(t, h1.Dropped, r.Fields[3].Kind)
	require.Equal(t, h1.Other, r.Fields[6].Kind)
	require.True(t, r.Close())
}

func TestConnection_MembersAreTokens(t *testing.T) { // 66
	for _, v := range []string{`"X-Drop"`, "X Drop", "close;q=1", "X-Drop:", "a/b", "\xff", "close close", "(x)", "a,b c", "@"} {
		refusesBoth(t, "malformed Connection", "Connection: "+v+"\r\n")
		refusesBoth(t, "malformed Connection", "Connection: close\r\n", "Connection: "+v+"\r\n")
	}
}

func TestConnection_MembersAreBounded(t *testing.T) {
	list := func(n int) string { return "Connection: x" + strings.Repeat(",x", n-1) + "\r\n" }
	accepts(t, with(list(h1.MaxOptions)))
	refuses(t, 400, "malformed Connection", with(list(h1.MaxOptions+1)))
	refuses(t, 400, "malformed Connection", with(strings.Repeat("Connection: x\r\n", h1.MaxOptions+1)))
	accepts(t, with("Connection: close"+strings.Repeat(",close,", 1000)+"\r\n"))
}

func TestConnection_Persistence(t *testing.T) { // 129, 130
	for _, c := range []struct {
		version, lines string
		shut           bool
	}{
		{"1.1", "", false},
		{"1.1", "Connection: close\r\n", true},
		{"1.1", "Connection: Keep-Alive, Close\r\n", true},
		{"1.1", "Connection: keep-alive\r\n", false},
		{"1.1", "Connection: closed\r\n", false},
		{"1.1", "Connection: keep-alive\r\nConnection: CLOSE\r\n", true},
		{"1.1", "Proxy-Connection: close\r\n", false},
		{"1.2", "", false},
		{"1.0", "", true},
		{"1.0", "Connection: Keep-Alive\r\n", false},
		{"1.0", "Connection: keep-alive, close\r\n", true},
	} {
		require.Equal(t, c.shut, request(t, "GET / HTTP/"+c.version+"\r\nHost: a\r\n"+c.lines+"\r\n").Close(), "%v", c)
		require.Equal(t, c.shut, response(t, "HTTP/"+c.version+" 200 OK\r\n"+c.lines+"\r\n").Close(), "%v", c)
	}
}

func TestRequest_Upgrade(t *testing.T) { // 82, 83, 84
	for _, c := range []struct {
		lines string
		asks  bool
	}{
		{"Connection: Upgrade\r\nUpgrade: websocket\r\n", true},
		{"Connection: keep-alive, UPGRADE\r\nupgrade: FOO\r\n", true},
		{"Upgrade: websocket\r\nConnection: upgrade\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", false}, // 299
		{"Connection: Upgrade\r\nUpgrade: tls/1.0,HTTP/2.0 , h2,, H2C\r\n", false},
		{"Connection: Upgrade\r\nUpgrade:\r\nupgrade: HTTP/3\r\n", false},
		{"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\nUpgrade: foo\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: TLS/1.2, foo\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: h2x\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: xtls/1.2\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: IRC/6.9\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: /1.2\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: h2c, H2C\r\n", false},
		{"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n", true},
		{"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", false},
		{"Connection: Upgrade\r\nUpgrade: H2C\r\n", false},
		{"Connection: Upgrade\r\n", false},
		{"Upgrade: websocket\r\n", false},
		{"Connection: close\r\nUpgrade: websocket\r\n", false},
	} {
		accepts(t, with(c.lines))
		require.Equal(t, c.asks, request(t, with(c.lines)).Upgrade, c.lines)
		require.False(t, request(t, "GET / HTTP/1.0\r\n"+c.lines+"\r\n").Upgrade, "HTTP/1.0 knows no upgrade")
	}
}

func TestRequest_AppendUpgradeLeavesOutWhatMayBeDeclined(t *testing.T) { // 299
	for lines, want := range map[string]string{
		"Upgrade: websocket\r\n":                                       "websocket",
		"Upgrade: websocket, h2c\r\n":                                  "websocket",
		"Upgrade: TLS/1.2, h2 ,, WebSocket ,h2c\r\nUpgrade: foo/1\r\n": "WebSocket, foo/1",
		"Upgrade: HTTP/2.0\r\nX: 1\r\nupgrade: a,b\r\nUpgrade:\r\n":    "a, b",
	} {
		r := request(t, with("Connection: Upgrade\r\n", lines))
		require.Equal(t, "xUpgrade: "+want+"\r\n", string(r.AppendUpgrade([]byte("x"))), "%q", lines)
	}
}

func TestRequest_Expect(t *testing.T) { // 102
	for _, c := range []struct {
		lines string
		waits bool
	}{
		{"Expect: 100-continue\r\nContent-Length: 5\r\n", true},
		{"Transfer-Encoding: chunked\r\nexpect: 100-Continue\r\n", true},
		{"Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 1\r\n", true},
		{"Expect: 100-continue\r\n", false},
		{"Expect: 100-continue\r\nContent-Length: 0\r\n", false},
		{"Content-Length: 5\r\n", false},
	} {
		accepts(t, with(c.lines))
		require.Equal(t, c.waits, request(t, with(c.lines)).Continue, c.lines)
	}
	require.False(t, request(t, "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").Continue)
	require.False(t, request(t, "POST / HTTP/1.0\r\nExpect: foo\r\nContent-Length: 5\r\n\r\n").Continue)
	for _, v := range []string{"foo", "100", "", "100-continue, foo", "100-continue;a", "200-ok", "100-continue, 100-continue"} {
		refuses(t, 417, "unknown expectation", with("Expect: "+v+"\r\n", "Content-Length: 5\r\n"))
	}
}

func TestRequest_MaxForwards(t *testing.T) { // 74, 305
	const largest = 1<<63 - 1
	for _, method := range []string{"OPTIONS", "TRACE"} {
		head := func(lines string) string { return method + " / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" }
		for v, n := range map[string]int64{"0": 0, "3": 3, "010": 10, strings.Repeat("0", 30) + "7": 7, "9223372036854775806": largest - 1,
			"9223372036854775807": largest, "9223372036854775808": largest, "12345678901234567890": largest, strings.Repeat("9", 2000): largest} {
			accepts(t, head("Max-Forwards: "+v+"\r\n"))
			require.Equal(t, n, request(t, head("max-forwards: "+v+"\r\n")).MaxForwards, short(v))
			require.EqualValues(t, -1, request(t, with("Max-Forwards: "+v+"\r\n")).MaxForwards, "GET has none")
		}
		require.EqualValues(t, -1, request(t, head("")).MaxForwards)
		for _, lines := range []string{"Max-Forwards: x\r\n", "Max-Forwards:\r\n", "Max-Forwards: -1\r\n", "Max-Forwards: 1, 2\r\n",
			"Max-Forwards: 1\r\nMax-Forwards: 1\r\n", "Max-Forwards: 99999999999999999999x\r\n", "Max-Forwards: 1/\r\n", "Max-Forwards: 1:\r\n"} {
			refuses(t, 400, "malformed Max-Forwards", head(lines))
			accepts(t, with(lines))
		}
	}
}

func TestRequest_Hops(t *testing.T) { // 73
	for v, n := range map[string]int{
		"":                              0,
		"Via: 1.1 ferryman\r\n":         1,
		"Via: 1.1 Ferryman , 1.0 x\r\n": 1,
		"Via: 1.1 ferryman,1.1 ferryman\r\nX: 1\r\nvia: 1.1 ferryman\r\n": 3,
		"Via: 1.1 ferryman2, 1.0 ferryman\r\nVia:\r\n":                    0,
		"X: 1.1 ferryman\r\n": 0,
	} {
		accepts(t, with(v))
		require.Equal(t, n, request(t, with(v)).Hops, v)
	}
}
