package h1_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const chunkedAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// behindAnswer is a reader that has read a response's head from src.
func behindAnswer(t testing.TB, src *script) *h1.Reader {
	t.Helper()
	in, r := h1.NewReader(src), new(h1.Response)
	r.Reset()
	for done := false; !done; {
		require.NoError(t, in.Fill())
		var err error
		done, err = in.Response(r)
		require.NoError(t, err)
	}
	return in
}

// everyAnswer is everyRead for the body of a response.
func everyAnswer(t testing.TB, wire string) read {
	t.Helper()
	src := scripted([]string{chunkedAnswer + wire})
	want := readBody(behindAnswer(t, src), src, h1.Chunked, 0, 32<<10)
	for i, cut := range pieces(chunkedAnswer + wire) {
		src := scripted(cut)
		require.Equal(t, want, readBody(behindAnswer(t, src), src, h1.Chunked, 0, 64), "cut %d: %s", i, short(wire))
	}
	return want
}

func TestChunked_BlanksBehindASizeAreTakenInResponsesOnly(t *testing.T) { // 43, 307
	for _, blanks := range []string{" ", "  ", "\t", " \t \t", strings.Repeat(" ", h1.MaxChunkExt-2)} {
		for _, wire := range []string{"5" + blanks + "\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0" + blanks + "\r\n\r\n",
			"5" + blanks + ";a\r\nhello\r\n0" + blanks + "\r\n\r\n"} {
			require.Equal(t, read{Payload: "hello", Rest: "behind"}, everyAnswer(t, wire+"behind"), short(wire))
			require.Equal(t, badSize, everyRead(t, h1.Chunked, 0, wire).Cause, "of a request: %s", short(wire))
		}
	}
	for wire, cause := range map[string]string{
		"5" + strings.Repeat(" ", h1.MaxChunkExt+2) + "\r\nhello\r\n": badExt,
		" 5\r\nhello\r\n":      badSize,
		"5 5\r\nhello\r\n":     badSize,
		"5 x\r\nhello\r\n":     badSize,
		"5 \rx\nhello\r\n":     badSize,
		"5 \nhello\r\n":        badSize,
		"5 \r \r\nhello\r\n":   badSize,
		" \r\nhello\r\n":       badSize,
		"5\x0b\r\nhello\r\n":   badSize,
		"5 \x00\r\nhello\r\n":  badSize,
		"5\r\nhello \r\n0\r\n": badChunkEnd,
	} {
		require.Equal(t, cause, everyAnswer(t, wire+"0\r\n\r\n").Cause, short(wire))
	}
}

// trailerBehind reads a chunked message whose head has these lines, and returns what may be forwarded of
// its trailer section.
func trailerBehind(t *testing.T, cut []string, answer bool) string {
	t.Helper()
	src := scripted(cut)
	in := h1.NewReader(src)
	if answer {
		in = behindAnswer(t, src)
	} else {
		readHead(t, in)
	}
	var body h1.Body
	body.Reset(in, h1.Chunked, 0)
	_, err := io.ReadAll(&body)
	require.NoError(t, err)
	return strings.TrimSuffix(strings.TrimPrefix(string(h1.AppendTrailer(nil, body.Trailer())), "0\r\n"), "\r\n")
}

func TestTrailer_WhatConnectionNominatesIsMarked(t *testing.T) { // 308
	for connection, want := range map[string]string{
		"":                              "X-A: 1\r\nx-b: 2\r\nX-A: 3\r\n",
		"Connection: close\r\n":         "X-A: 1\r\nx-b: 2\r\nX-A: 3\r\n",
		"Connection: x-a\r\n":           "x-b: 2\r\n",
		"Connection: X, X-B, close\r\n": "X-A: 1\r\nX-A: 3\r\n",
		"Connection: X-B\r\nX: 1\r\nconnection: ,X-A\r\n": "",
	} {
		lines := "Transfer-Encoding: chunked\r\n" + connection + "\r\n1\r\nx\r\n0\r\nX-A: 1\r\nx-b: 2\r\nX-A: 3\r\n\r\n"
		for _, cut := range pieces("HTTP/1.1 200 OK\r\n" + lines) {
			require.Equal(t, want, trailerBehind(t, cut, true), "%q", connection)
		}
		for _, cut := range pieces("POST / HTTP/1.1\r\nHost: a\r\n" + lines) {
			require.Equal(t, want, trailerBehind(t, cut, false), "%q", connection)
		}
	}
}

// What one message nominates is nothing to the next one on the same connection.
func TestTrailer_NominationsEndWithTheirMessage(t *testing.T) {
	const chunks = "0\r\nX-A: 1\r\n\r\n"
	src := scripted([]string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-A\r\n\r\n" + chunks + chunkedAnswer + chunks})
	in := behindAnswer(t, src)
	var body h1.Body
	for i, want := range []string{"0\r\n\r\n", chunks} {
		if i > 0 {
			r := new(h1.Response)
			r.Reset()
			done, err := in.Response(r)
			require.NoError(t, err)
			require.True(t, done)
		}
		body.Reset(in, h1.Chunked, 0)
		_, err := io.ReadAll(&body)
		require.NoError(t, err)
		require.Equal(t, want, string(h1.AppendTrailer(nil, body.Trailer())))
	}
}
