package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scan feeds raw in pieces of at most size bytes and then, if it is not done, the end of the stream.
func scan(s *Scanner, e Expectation, raw string, size int) (taken int, done bool, err error) {
	s.Reset(e)
	for taken < len(raw) && !done && err == nil {
		var n int
		n, done, err = s.Feed([]byte(raw[taken:min(taken+size, len(raw))]))
		taken += n
	}
	if err == nil && !done {
		done = s.EOF()
	}
	return taken, done, err
}

// pieces are the sizes every answer is tried in.
var pieces = []int{1, 2, 3, 7, 1 << 20}

func TestScanner_ReadsAnswersHoweverTheyAreCut(t *testing.T) {
	const next = "HTTP/1.1 500 the next answer"
	for _, tc := range []struct {
		name, raw string
		expect    Expectation
		status    int
		length    int64
		closes    bool
		wrong     bool
	}{
		{name: "fixed", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", status: 200, length: 5},
		{name: "no reason", raw: "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", status: 200},
		{name: "chunked", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", status: 200, length: 13},
		{name: "trailers", raw: "HTTP/1.1 200 OK\r\nTRANSFER-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n", status: 200, length: 1},
		{name: "1xx first", raw: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", status: 204},
		{name: "304 has no body", raw: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", status: 304},
		{name: "head", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", expect: Expectation{NoBody: true}, status: 200},
		{name: "close", raw: "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 1\r\n\r\nx", status: 200, length: 1, closes: true},
		{name: "1.0", raw: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", status: 200, length: 1, closes: true},
		{name: "1.0 kept", raw: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", status: 200, length: 1},
		{name: "same length twice", raw: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", status: 200, length: 1},
		{name: "right body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", expect: Expectation{Exact: true, Body: []byte("ok")}, status: 200, length: 2},
		{name: "wrong body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\noK", expect: Expectation{Exact: true, Body: []byte("ok")}, status: 200, length: 2, wrong: true},
		{name: "short body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\no", expect: Expectation{Exact: true, Body: []byte("ok")}, status: 200, length: 1, wrong: true},
		{name: "long body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok!", expect: Expectation{Exact: true, Body: []byte("ok")}, status: 200, length: 3, wrong: true},
		{name: "no body wanted", raw: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", expect: Expectation{Exact: true}, status: 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Scanner{}
			for _, size := range pieces {
				taken, done, err := scan(s, tc.expect, tc.raw+next, size)
				require.NoError(t, err, "pieces of %d", size)
				require.True(t, done)
				require.Equal(t, len(tc.raw), taken, "not a byte of the next answer")
				require.Equal(t, tc.status, s.Status)
				require.Equal(t, tc.length, s.Length)
				require.Equal(t, tc.closes, s.Close)
				require.Equal(t, !tc.wrong, s.Right())
			}
		})
	}
}

func TestScanner_ABodyWithoutLengthEndsWithTheConnection(t *testing.T) {
	s := &Scanner{}
	for _, size := range pieces {
		_, done, err := scan(s, Expectation{Exact: true, Body: []byte("until the end")}, "HTTP/1.1 200 OK\r\n\r\nuntil the end", size)
		require.NoError(t, err)
		require.True(t, done)
		require.True(t, s.Close)
		require.True(t, s.Right())
	}
}

func TestScanner_ATruncatedAnswerIsNeverDone(t *testing.T) {
	s := &Scanner{}
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: x\r\n\r\n",
	} {
		for cut := range len(whole) {
			_, done, err := scan(s, Expectation{}, whole[:cut], 1<<20)
			require.NoError(t, err, "cut at %d", cut)
			require.False(t, done, "cut at %d", cut)
			require.False(t, s.Right())
			require.Equal(t, cut > 0, s.Begun())
		}
	}
}

func TestScanner_RefusesWhatCouldBeReadInTwoWays(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\n"
	for _, tc := range []struct{ name, raw string }{
		{"garbage", "SSH-2.0-OpenSSH_9.2\r\n"}, {"http/2", "HTTP/2 200 OK\r\n\r\n"}, {"version", "HTTP/1.2 200 OK\r\n\r\n"},
		{"status", "HTTP/1.1 20 OK\r\n\r\n"}, {"status 4 digits", "HTTP/1.1 2000 OK\r\n\r\n"}, {"status 600", "HTTP/1.1 600 X\r\n\r\n"},
		{"bare LF in head", ok + "Content-Length: 1\nX: y\r\n\r\nx"}, {"bare CR", ok + "X: a\rb\r\n\r\n"},
		{"space before colon", ok + "Content-Length : 1\r\n\r\nx"}, {"obs-fold", ok + "X: a\r\n b\r\n\r\n"}, {"no colon", ok + "nonsense\r\n\r\n"},
		{"empty name", ok + ": x\r\n\r\n"}, {"NUL", ok + "X: a\x00b\r\n\r\n"},
		{"two lengths", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx"}, {"length list", ok + "Content-Length: 1, 1\r\n\r\nx"},
		{"signed length", ok + "Content-Length: +1\r\n\r\nx"}, {"huge length", ok + "Content-Length: 9999999999999999999\r\n\r\nx"},
		{"length and chunked", ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunked twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"other coding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"}, {"chunked in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunk size", ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n"}, {"no chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n\r\n"},
		{"huge chunk", ok + "Transfer-Encoding: chunked\r\n\r\n8000000000000000\r\n"}, {"long chunk", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"},
		{"LF in chunks", ok + "Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n"}, {"bad trailer", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nx\r\n\r\n"},
		{"101", "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
		{"head without an end", ok + strings.Repeat("X: y\r\n", 20_000)},
		{"line without an end", ok + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 10_000)},
		{"endless trailers", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 20_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Scanner{}
			for _, size := range pieces {
				_, _, err := scan(s, Expectation{}, tc.raw, size)
				require.True(t, errors.Is(err, ErrMalformed), "pieces of %d: got %v", size, err)
			}
		})
	}
}

func TestScanner_KnowsARefusal(t *testing.T) {
	s := &Scanner{}
	_, done, err := scan(s, Expectation{}, "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\nContent-Length: 21\r\n\r\nupstream unavailable\n", 5)
	require.NoError(t, err)
	require.True(t, done)
	require.True(t, s.RetryAfter)
	require.Equal(t, "upstream unavailable\n", string(s.Snippet()))
	_, _, err = scan(s, Expectation{}, "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"+strings.Repeat("x", 200), 1<<20)
	require.NoError(t, err)
	require.False(t, s.RetryAfter, "nothing is left of the answer before")
	require.Len(t, s.Snippet(), SnippetSize)
}

const ordinary = "HTTP/1.1 200 OK\r\nServer: echo\r\nDate: Sat, 29 Nov 2025 20:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-Echo-Instance: a\r\nVia: 1.1 x\r\n\r\nhello"

func TestScanner_AllocatesNothing(t *testing.T) {
	s, whole, expect := &Scanner{}, []byte(ordinary), Expectation{Exact: true, Body: []byte("hello")}
	bad := []byte("HTTP/1.1 200 OK\r\nbad\r\n\r\n")
	read := func() {
		s.Reset(expect)
		if _, done, err := s.Feed(whole); !done || err != nil || !s.Right() {
			panic("not read")
		}
		s.Reset(expect)
		_, _, _ = s.Feed(whole[:40])
		_, _, _ = s.Feed(whole[40:])
		s.Reset(expect)
		if _, _, err := s.Feed(bad); err == nil {
			panic("read")
		}
	}
	read()
	require.Zero(t, testing.AllocsPerRun(1000, read))
}

func BenchmarkScanner_Ordinary(b *testing.B) {
	s, whole := &Scanner{}, []byte(ordinary)
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(Expectation{})
		_, _, _ = s.Feed(whole)
	}
}
