package h1_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// endless sends the same bytes over and over, at most step at a time.
type endless struct {
	start, again string
	step, sent   int
}

func (s *endless) Await() error { return nil }

func (s *endless) Read(p []byte) (n int, err error) {
	for n < len(p) && n < s.step {
		if at := s.sent; at < len(s.start) {
			p[n] = s.start[at]
		} else {
			p[n] = s.again[(at-len(s.start))%len(s.again)]
		}
		n++
		s.sent++
	}
	return n, nil
}

// refusedAfter reads a head that never ends until it is refused. It returns the status and the
// number of bytes that were taken in, and insists that no buffer is larger than the largest.
func refusedAfter(t *testing.T, parse func(*h1.Reader) (bool, error), src *endless) (status, taken int) {
	t.Helper()
	in := h1.NewReader(src)
	defer in.Release()
	for {
		done, err := parse(in)
		require.False(t, done)
		if syntax, ok := errors.AsType[*h1.Error](err); ok {
			return syntax.Status, src.sent
		}
		require.NoError(t, in.Fill())
		require.LessOrEqual(t, in.BufferSize(), h1.LargeBuffer)
	}
}

func requestParser() func(*h1.Reader) (bool, error) {
	var r h1.Request
	r.Reset()
	return func(in *h1.Reader) (bool, error) { return in.Request(&r) }
}

func responseParser() func(*h1.Reader) (bool, error) {
	var r h1.Response
	r.Reset()
	return func(in *h1.Reader) (bool, error) { return in.Response(&r) }
}

func TestRequest_IsRefusedAsSoonAsItIsHopeless(t *testing.T) { // 2, 7, 9, 10, 30, 31, 273
	for _, c := range []struct {
		name, start, again string
		status, after      int
	}{
		{"TLS ClientHello", "\x16\x03\x01\x02\x00\x01", "\x00", 400, 1},
		{"blank first", " ", "x", 400, 1},
		{"bare LF", "GET / HTTP/1.1\nHost: a", "x", 400, len("GET / HTTP/1.1\n")},
		{"LF first", "\n", "x", 400, 1},
		{"bare CR", "\rG", "x", 400, 2},
		{"empty lines", "", "\r\n", 400, 4},
		{"no token", "G(", "x", 400, 2},
		{"long method", "", "M", 400, h1.MaxMethod + 1},
		{"two blanks", "GET  ", "x", 400, 5},
		{"long target", "GET /", "a", 414, h1.MaxMethod + 1 + h1.MaxTarget + 1 + len("HTTP/1.1") + 1},
		{"long version", "GET / HTTP/1.", "1", 400, h1.MaxMethod + 1 + h1.MaxTarget + 1 + len("HTTP/1.1") + 1},
		{"version 2", "GET / HTTP/2.0\r\n", "x", 505, len("GET / HTTP/2.0\r\n")},
		{"long field", "GET / HTTP/1.1\r\nX: ", "v", 431, h1.MaxHead + 1},
		{"many fields", "GET / HTTP/1.1\r\n", "X: 1\r\n", 431, len("GET / HTTP/1.1\r\n") + 257*len("X: 1\r\n")},
		{"bad field", "GET / HTTP/1.1\r\nX : 1\r\n", "x", 400, len("GET / HTTP/1.1\r\nX : 1\r\n")},
		{"two lengths", "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n", "x", 400,
			len("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n")},
	} {
		for _, step := range []int{1, 7, 1460, 1 << 20} {
			status, taken := refusedAfter(t, requestParser(), &endless{start: c.start, again: c.again, step: step})
			require.Equal(t, c.status, status, "%s in steps of %d", c.name, step)
			if step == 1 {
				require.LessOrEqual(t, taken, c.after, c.name)
			} else {
				require.LessOrEqual(t, taken, h1.LargeBuffer, "%s in steps of %d", c.name, step)
			}
		}
	}
}

func TestResponse_IsRefusedAsSoonAsItIsHopeless(t *testing.T) { // 110, 113
	for _, c := range []struct {
		name, start, again string
		after              int
	}{
		{"SSH banner", "SSH-2.0-", "x", 1},
		{"TLS alert", "\x15\x03\x01", "x", 1},
		{"HTTP/2", "HTTP/2", "x", 6},
		{"bare LF", "HTTP/1.1 200 OK\n", "x", 16},
		{"long reason", "HTTP/1.1 200 ", "x", h1.MaxHead + 1},
		{"long head", "HTTP/1.1 200 OK\r\nX: ", "v", h1.MaxHead + 1},
		{"many fields", "HTTP/1.1 200 OK\r\n", "X: 1\r\n", 17 + 257*6},
	} {
		for _, step := range []int{1, 1460, 1 << 20} {
			_, taken := refusedAfter(t, responseParser(), &endless{start: c.start, again: c.again, step: step})
			if step == 1 {
				require.LessOrEqual(t, taken, c.after, c.name)
			} else {
				require.LessOrEqual(t, taken, h1.LargeBuffer, c.name)
			}
		}
	}
}

// What comes byte by byte is not looked at from the start each time: four times the bytes cost
// about four times the work, not sixteen times.
func TestParse_WorkGrowsWithTheBytesOnly(t *testing.T) { // 264
	heads := map[string]func(n int) string{
		"target": func(n int) string { return "GET /" + strings.Repeat("a", n/4) },
		"value":  func(n int) string { return "GET / HTTP/1.1\r\nX: " + strings.Repeat("a", n-50) },
		"fields": func(n int) string {
			return "GET / HTTP/1.1\r\n" + strings.Repeat("X: "+strings.Repeat("v", n/200)+"\r\n", 190)
		},
	}
	for name, head := range heads {
		small, large := time.Hour, time.Hour
		for try := 0; try < 500 && (try < 9 || large >= 9*small); try++ { // a busy machine needs more tries
			small = min(small, byteByByte(head(h1.MaxHead/4)))
			large = min(large, byteByByte(head(h1.MaxHead)))
		}
		require.Less(t, large, 9*small, "%s: %v for a quarter, %v for all", name, small, large)
	}
}

// byteByByte is the time that it takes to parse a head that arrives byte by byte.
func byteByByte(head string) time.Duration {
	b := []byte(head)
	var r h1.Request
	start := time.Now()
	for n := range b {
		if _, err := r.Parse(b[:n+1]); err != nil {
			panic(err)
		}
	}
	return time.Since(start)
}
