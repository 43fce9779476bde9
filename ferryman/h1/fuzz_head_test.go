package h1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// The strict grammar of what may be accepted, written apart from the parser. Bytes are runes here.
var (
	requestGrammar = regexp.MustCompile(
		"(?s)^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} [!-\"$-~\u0080-\u00ff]+ HTTP/1\\.[0-9]\r\n" + fieldGrammar + "\r\n$")
	responseGrammar = regexp.MustCompile(
		"(?s)^HTTP/1\\.[0-9] [1-9][0-9][0-9](?: [\t -~\u0080-\u00ff]*)?\r\n" + fieldGrammar + "\r\n$")
)

const fieldGrammar = "(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\u0080-\u00ff]*\r\n)*"

func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// sameCut parses data whole, cut in two, and byte by byte.
func sameCut(t *testing.T, parse parser, data []byte, cut uint) outcome {
	t.Helper()
	whole := parse(data, []int{len(data)})
	at := int(cut % uint(len(data)+1))
	require.Equal(t, whole, parse(data, []int{at, len(data)}), "cut at %d", at)
	if len(data) < 2000 {
		single := make([]int, len(data))
		for i := range single {
			single[i] = i + 1
		}
		require.Equal(t, whole, parse(data, single), "byte by byte")
	}
	return whole
}

var headSeeds = []string{
	"X: 1\r\n", "X:\t1 \r\nx: 2\r\n", "X : 1\r\n", " X: 1\r\n", "X: a\r\n b\r\n", "X: a\rb\r\n", "X: a\nY: b\r\n", "X: a\x00b\r\n",
	"Content-Length: 5\r\n", "Content-Length: 05\r\n", "Content-Length: +5\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
	"Content-Length: 5, 5\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n",
	"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding:\x0bchunked\r\n",
	"Transfer_Encoding: chunked\r\nContent-Length: 40\r\n", "Transfer-Encoding\xa0: chunked\r\n", "Connection: close, X\r\nX: 1\r\n",
	"Connection: keep-alive\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n", "Connection: \"x\"\r\n", "Expect: 100-continue\r\nContent-Length: 1\r\n",
	"Trailer: X\r\nTransfer-Encoding: chunked\r\n", "Host: b\r\n", "host:\r\n", "Via: 1.1 ferryman\r\n", "X: \xff\x80\r\n", ": x\r\n", "Pragma: no-cache\r\n",
}

var startSeeds = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.0\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n",
	"GET http://b.example/x?q HTTP/1.1\r\nHost: a\r\n", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n",
	"OPTIONS http://[::1]:80 HTTP/1.1\r\nHost: a\r\n", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n", "GET /%zz?%q HTTP/1.1\r\nHost: a:80\r\n",
	"PRI * HTTP/2.0\r\n", "GET /\xff\"<>^`{|}\\ HTTP/1.9\r\nHost: [::1]:8080\r\n", "GET //b/x HTTP/1.1\r\nHost: a.\r\n",
	"M-SEARCH /a;b=c HTTP/1.1\r\nHost: a_b\r\n", "GET /a HTTP/1.1\nHost: a\r\n", "GET /a#b HTTP/1.1\r\nHost: a\r\n", "\x16\x03\x01\x02\x00",
}

func FuzzRequestHead(f *testing.F) {
	for _, start := range startSeeds {
		f.Add([]byte(start+"\r\nbehind"), uint(7))
	}
	for _, lines := range headSeeds {
		f.Add([]byte(startSeeds[0]+lines+"\r\n"), uint(40))
	}
	f.Add([]byte(browserHead), uint(100))
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		o := sameCut(t, parseRequest, data, cut)
		if !o.accepted() {
			return
		}
		head := data[:o.Used]
		require.Regexp(t, requestGrammar, latin1(head))
		r := request(t, string(head))
		sameAsNetHTTP(t, r, head)

		var drop kinds
		printed := append(append([]byte(nil), r.Method()...), ' ')
		target := bytes.Split(head, []byte(" "))[1]
		printed = append(append(printed, target...), " HTTP/1.1\r\n"...)
		if r.Old() {
			printed[len(printed)-3] = '0'
		}
		printed = append(r.AppendKept(printed, &drop), "\r\n"...)
		again := parseRequest(printed, []int{len(printed)})
		o.Used = again.Used
		require.Equal(t, o, again, "printed and parsed again")
	})
}

// sameAsNetHTTP insists that net/http reads the same out of a head that h1 accepts.
func sameAsNetHTTP(t *testing.T, r *h1.Request, head []byte) {
	t.Helper()
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	sameFields(t, &r.Head, fields)

	target := string(bytes.Split(line, []byte(" "))[1])
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(withoutTrailerField(head))))
	if err != nil && strings.Contains(err.Error(), "invalid URL") || err != nil && strings.Contains(err.Error(), "invalid port") {
		// Escapes are judged where paths are routed, not here; all else must be read the same.
		plain := bytes.Replace(withoutTrailerField(head), []byte(" "+target+" "), []byte(" / "), 1)
		req, err = http.ReadRequest(bufio.NewReader(bytes.NewReader(plain)))
		require.NoError(t, err, "%q", head)
		req.RequestURI = target
	}
	require.NoError(t, err, "%q", head)
	require.Equal(t, req.Method, string(r.Method()))
	require.Equal(t, req.RequestURI, target)
	require.Equal(t, req.Host, hostOf(r, req), "%q", head)
	require.Equal(t, req.ProtoMinor == 0, r.Old())
	require.Equal(t, req.Close, r.Close(), "%q", head)
	framing, n := r.Framing()
	require.Equal(t, len(req.TransferEncoding) > 0, framing == h1.Chunked, "%q", head)
	if framing != h1.Chunked {
		require.Equal(t, req.ContentLength, n, "%q", head)
	}
}

// hostOf is what r says of the host. For CONNECT net/http takes the target.
func hostOf(r *h1.Request, req *http.Request) string {
	if r.Connect {
		return req.RequestURI
	}
	return string(r.Host())
}

// withoutTrailerField takes the Trailer lines away: net/http has opinions on what may be announced.
func withoutTrailerField(head []byte) []byte {
	var kept [][]byte
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if name, _, _ := bytes.Cut(line, []byte(":")); !bytes.EqualFold(name, []byte("Trailer")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, []byte("\r\n"))
}

// sameFields compares the fields of h with what net/textproto reads.
func sameFields(t *testing.T, h *h1.Head, lines []byte) {
	t.Helper()
	want, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines))).ReadMIMEHeader()
	require.NoError(t, err, "%q", lines)
	got := textproto.MIMEHeader{}
	for i := range h.Fields {
		f := &h.Fields[i]
		got.Add(string(h.Name(f)), string(h.ValueOf(f)))
	}
	require.Equal(t, want, got, "%q", lines)
}

func FuzzResponseHead(f *testing.F) {
	for _, line := range []string{"HTTP/1.1 200 OK", "HTTP/1.0 404 ", "HTTP/1.1 204", "HTTP/1.9 999 \xff", "HTTP/1.1 103 Early Hints",
		"HTTP/1.1 304 x", "HTTP/1.1 2000 OK", "HTTP/2 200 OK", "ICY 200 OK", "HTTP/1.1 200  a", "HTTP/1.1 101 Switching Protocols"} {
		f.Add([]byte(line+"\r\nContent-Length: 5\r\n\r\nhello"), uint(9))
	}
	for _, lines := range headSeeds {
		f.Add([]byte("HTTP/1.1 200 OK\r\n"+lines+"\r\n"), uint(20))
	}
	f.Add([]byte(responseHead), uint(100))
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		o := sameCut(t, parseResponse, data, cut)
		if !o.accepted() {
			return
		}
		head := data[:o.Used]
		require.Regexp(t, responseGrammar, latin1(head))
		r := response(t, string(head))
		line, fields, _ := bytes.Cut(head, []byte("\r\n"))
		sameFields(t, &r.Head, fields)

		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(withoutTrailerField(head))), nil)
		require.NoError(t, err, "%q", head)
		require.Equal(t, resp.StatusCode, r.Status, "%q", line)
		require.Equal(t, strings.TrimRight(resp.Status, " "), strings.TrimRight(fmt.Sprintf("%d %s", r.Status, r.Reason()), " "))
		require.Equal(t, resp.Close, r.Close() || untilClose(r), "%q", head)
		framing, n := r.Framing()
		switch framing {
		case h1.Chunked:
			require.Equal(t, []string{"chunked"}, resp.TransferEncoding, "%q", head)
		case h1.Length:
			require.Equal(t, n, resp.ContentLength, "%q", head)
		case h1.UntilClose:
			require.EqualValues(t, -1, resp.ContentLength, "%q", head)
		}
		printed := append(r.AppendKept(h1.AppendStatus(nil, r.Status, r.Reason()), &kinds{}), "\r\n"...)
		if r.Old() {
			printed[len("HTTP/1.")] = '0'
		}
		again := parseResponse(printed, []int{len(printed)})
		o.Used = again.Used
		require.Equal(t, o, again, "printed and parsed again")
	})
}

func untilClose(r *h1.Response) bool {
	f, _ := r.Framing()
	return f == h1.UntilClose
}
