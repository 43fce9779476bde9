package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const badStatus = "malformed status line"

func TestResponse_StatusLines(t *testing.T) { // 97, 110
	for line, want := range map[string]string{
		"HTTP/1.1 200 OK":                             `200 "OK"`,
		"HTTP/1.1 200 ":                               `200 ""`,
		"HTTP/1.1 200":                                `200 ""`,
		"HTTP/1.0 404 Not Found":                      `404 "Not Found"`,
		"HTTP/1.1 200  two":                           `200 " two"`,
		"HTTP/1.1 200 a\tb":                           `200 "a\tb"`,
		"HTTP/1.9 999 \xff\x80":                       `999 "\xff\x80"`,
		"HTTP/1.1 100 Continue":                       `100 "Continue"`,
		"HTTP/1.1 199 x":                              `199 "x"`,
		"HTTP/1.1 200 " + strings.Repeat("r", 32<<10): fmt.Sprintf("200 %q", strings.Repeat("r", 32<<10)),
	} {
		require.Equal(t, want, acceptsResponse(t, line+"\r\nX: 1\r\n\r\n").Start)
	}
	for _, line := range []string{"", "fo", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 s", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK",
		"HTTP/1.1 123abc OK", "HTTP/2 200 OK", "HTTP/2.0 200 OK", "HTTP/9.9 200", "HTTP/0.9 200 OK", "ICY 200 OK", "200 OK",
		"GET / HTTP/1.1", "\x15\x03\x01\x00\x02\x02\x16", "SSH-2.0-OpenSSH_9.6", "HTTP/1.1  200 OK", "HTTP/1.1\t200 OK",
		"HTTP/1.1 200\tOK", "HTTP/1.1 200_OK", "http/1.1 200 OK", "HTTP/1.1 099 OK", "HTTP/1.1 000 OK", "HTTP/1.1 -20 OK",
		"HTTP/1.1 2 0 OK", "HTTP/1.1 20\xb2 OK", "HTTP/1. 200 OK", "HTTP/1.x 200 OK", "HTTP/1.10 200 OK", "HTTP/01.1 200 OK",
		" HTTP/1.1 200 OK", "\r\nHTTP/1.1 200 OK", "HTTP/1.1 200 a\x00b", "HTTP/1.1 200 a\rb", "HTTP/1.1 200 \x7f",
		"HTTP/1.1 200 OK\r", "HTTP/1.1 200\r", "HTTP/1.1 +20 OK"} {
		refusesResponse(t, badStatus, line+"\r\nX: 1\r\n\r\n")
	}
	refusesResponse(t, bareLF, "HTTP/1.1 200 OK\nX: 1\n\n")
	refusesResponse(t, bareLF, "\nHTTP/1.1 200 OK\r\n\r\n")
}

func TestResponse_HeadsAfterOneAnother(t *testing.T) { // 93
	wire := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	for _, cut := range pieces(wire) {
		in := h1.NewReader(scripted(cut))
		var r h1.Response
		var statuses []int
		for interim := true; interim; {
			r.Reset()
			for done := false; !done; {
				var err error
				done, err = in.Response(&r)
				require.NoError(t, err)
				if !done {
					require.NoError(t, in.Fill())
				}
			}
			statuses = append(statuses, r.Status)
			interim = r.Interim()
		}
		require.Equal(t, []int{103, 100, 200}, statuses)
		require.Equal(t, "5", value(&r.Head, "Content-Length"))
		require.Len(t, r.Fields, 1, "nothing is left of the heads before")
	}
}

func TestResponse_ResetForgetsToHead(t *testing.T) {
	r := response(t, answer("Content-Length: 5\r\n"))
	r.ToHead = true
	r.Reset()
	_, err := r.Parse([]byte(answer("Content-Length: 5\r\n")))
	require.NoError(t, err)
	f, n := r.Framing()
	require.Equal(t, h1.Length, f)
	require.EqualValues(t, 5, n)
}

func TestRequest_ResetForgetsEverything(t *testing.T) {
	full := "OPTIONS http://b HTTP/1.0\r\nHost: a\r\nConnection: close, keep-alive, upgrade, x\r\nVia: 1.1 ferryman\r\n" +
		"Max-Forwards: 3\r\nContent-Length: 5\r\nX: 1\r\n\r\n"
	r := request(t, full)
	for _, input := range []string{with(), "HEAD / HTTP/1.0\r\n\r\n", curlHead, browserHead} {
		r.Reset()
		n, err := r.Parse([]byte(input))
		fresh := request(t, input)
		require.Equal(t, outcomeOfRequest(fresh, len(input), nil), outcomeOfRequest(r, n, err))
	}
}

func TestHead_ZeroValueIsReady(t *testing.T) {
	for _, input := range []string{with("Content-Length: 5\r\n"), with(), curlHead} {
		var r h1.Request
		n, err := r.Parse([]byte(input))
		require.Equal(t, outcomeOfRequest(request(t, input), n, nil), outcomeOfRequest(&r, n, err))
	}
	var r h1.Response
	n, err := r.Parse([]byte(responseHead))
	require.Equal(t, outcomeOfResponse(response(t, responseHead), n, nil), outcomeOfResponse(&r, n, err))
}
