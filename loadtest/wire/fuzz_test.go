package wire

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzScanner holds the scanner against itself, fed whole and byte by byte, and against the
// standard library, which must be able to read whatever the scanner takes, with the same outcome.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		ordinary, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nbody",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 21\r\n\r\nupstream unavailable\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		whole, bytewise := &Scanner{}, &Scanner{}
		taken, done, err := scan(whole, Expectation{}, raw, 1<<20)
		taken1, done1, err1 := scan(bytewise, Expectation{}, raw, 1)
		if (err == nil) != (err1 == nil) || done != done1 || (err == nil && taken != taken1) {
			t.Fatalf("whole: %d %v %v, byte by byte: %d %v %v", taken, done, err, taken1, done1, err1)
		}
		if err != nil || !done {
			return
		}
		if whole.Status != bytewise.Status || whole.Length != bytewise.Length || whole.Close != bytewise.Close || string(whole.Snippet()) != string(bytewise.Snippet()) {
			t.Fatalf("whole and byte by byte differ: %+v %+v", whole, bytewise)
		}
		againstStandard(t, whole, raw[:taken])
	})
}

func againstStandard(t *testing.T, s *Scanner, raw string) {
	r := bufio.NewReader(strings.NewReader(raw))
	response, err := http.ReadResponse(r, nil)
	for err == nil && response.StatusCode < 200 {
		response, err = http.ReadResponse(r, nil)
	}
	if err != nil {
		t.Fatalf("taken, but the standard library says %v", err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("the standard library reads the body as %v", err)
	}
	if response.StatusCode != s.Status || int64(len(body)) != s.Length {
		t.Fatalf("status %d and %d bytes, the standard library says %d and %d", s.Status, s.Length, response.StatusCode, len(body))
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Fatalf("the standard library leaves %q", rest)
	}
}
