package h1_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

func TestBody_WithALength(t *testing.T) { // 53
	require.Equal(t, read{Payload: "hello"}, everyRead(t, h1.Length, 5, "hello"))
	require.Equal(t, read{Payload: "hello", Rest: smuggled}, everyRead(t, h1.Length, 5, "hello"+smuggled))
	require.Equal(t, read{Payload: "0\r\n\r\n", Rest: "x"}, everyRead(t, h1.Length, 5, "0\r\n\r\nx"))
	for n := range 5 {
		require.Equal(t, read{Payload: "hello"[:n], Cause: cutShort}, everyRead(t, h1.Length, 5, "hello"[:n]))
	}
	require.Equal(t, read{Payload: "hello", Cause: cutShort}, everyRead(t, h1.Length, 1<<63-1, "hello"))
}

func TestBody_UntilTheConnectionEnds(t *testing.T) { // 108, 109
	require.Equal(t, read{Payload: "hello"}, everyRead(t, h1.UntilClose, 0, "hello"))
	require.Equal(t, read{}, everyRead(t, h1.UntilClose, 0, ""))
	src := &script{pieces: [][]byte{[]byte("hel")}, end: errors.New("reset")}
	require.Equal(t, read{Payload: "hel", Cause: "reset"}, readBody(h1.NewReader(src), src, h1.UntilClose, 0, 10))
}

func TestBody_NoneLeavesEverything(t *testing.T) { // 40
	require.Equal(t, read{Rest: smuggled}, everyRead(t, h1.None, 0, smuggled))
	require.Equal(t, read{Rest: smuggled}, everyRead(t, h1.Length, 0, smuggled))
	var body h1.Body
	body.Reset(h1.NewReader(&script{}), h1.None, 0)
	require.True(t, body.Done())
	require.NoError(t, body.Await(), "there is nothing to wait for")
}

func TestBody_WholeLooksAheadAndTakesNothing(t *testing.T) {
	for _, row := range []struct {
		framing h1.Framing
		length  int64
		raw     string
		whole   bool
	}{
		{h1.None, 0, "x", true},
		{h1.Length, 5, "hello", true},
		{h1.Length, 5, "hello" + smuggled, true},
		{h1.Length, 5, "hell", false},
		{h1.Length, 1 << 62, "hell", false},
		{h1.Chunked, 0, "5\r\nhello\r\n0\r\n\r\n", true},
		{h1.Chunked, 0, "5\r\nhello\r\n0\r\nA: b\r\n\r\n" + smuggled, true},
		{h1.Chunked, 0, "5\r\nhello\r\n0\r\n\r", false},
		{h1.Chunked, 0, "5\r\nhello\r\n0\r\nA: b\r\n", false},
		{h1.Chunked, 0, "Z\r\n0\r\n\r\n", false},
		{h1.UntilClose, 0, "x", false},
	} {
		r := h1.NewReader(&script{pieces: [][]byte{[]byte(row.raw)}})
		require.NoError(t, r.Fill())
		var body h1.Body
		body.Reset(r, row.framing, row.length)
		for range 2 {
			require.Equal(t, row.whole, body.Whole(), "%q", row.raw)
			require.Equal(t, row.raw, string(r.Peek()))
		}
		for row.whole && !body.Done() {
			_, _ = body.Read(make([]byte, 1))
			require.True(t, body.Whole(), "%q", row.raw)
		}
	}
}

func TestBody_ErrorsOfTheSourceComeThrough(t *testing.T) {
	reset := errors.New("reset")
	for _, f := range []h1.Framing{h1.Length, h1.Chunked} {
		src := &script{pieces: [][]byte{[]byte("5\r\nhel")}, end: reset}
		got := readBody(h1.NewReader(src), src, f, 10, 100)
		require.Equal(t, "reset", got.Cause, "not taken for a short body")
		require.NotEmpty(t, got.Payload)
	}
}

// lastWithEnd returns its bytes together with io.EOF, as an io.Reader may.
type lastWithEnd struct{ b []byte }

func (s *lastWithEnd) Await() error { return nil }

func (s *lastWithEnd) Read(p []byte) (int, error) {
	n := copy(p, s.b)
	if s.b = s.b[n:]; len(s.b) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func TestBody_BytesThatComeWithTheEndCount(t *testing.T) {
	for wire, f := range map[string]h1.Framing{"hello": h1.Length, "5\r\nhello\r\n0\r\n\r\n": h1.Chunked, "hello\x00"[:5]: h1.UntilClose} {
		var body h1.Body
		body.Reset(h1.NewReader(&lastWithEnd{[]byte(wire)}), f, 5)
		b, err := io.ReadAll(&body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))
		require.True(t, body.Done())
	}
	for wire, f := range map[string]h1.Framing{"hell": h1.Length, "5\r\nhell": h1.Chunked} {
		var body h1.Body
		body.Reset(h1.NewReader(&lastWithEnd{[]byte(wire)}), f, 5)
		b, err := io.ReadAll(&body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "hell", string(b))
		require.False(t, body.Done())
	}
}

func TestBody_StartedTellsThatAReadWillNotBlock(t *testing.T) {
	src := scripted([]string{"POST / HTTP/1.1\r\nHost: a\r\n\r\nhel", "lo"})
	in := h1.NewReader(src)
	readHead(t, in)
	var body h1.Body
	body.Reset(in, h1.Length, 5)
	require.True(t, body.Started())
	before := src.waits
	require.NoError(t, body.Await())
	require.Equal(t, before, src.waits, "the bytes are there")
	p := make([]byte, 10)
	n, err := body.Read(p)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.False(t, body.Started())
	src.onAwait = func() { require.Zero(t, in.BufferSize(), "no buffer is held while waiting") }
	require.NoError(t, body.Await())
	require.Equal(t, before+1, src.waits)
	n, err = body.Read(p)
	require.NoError(t, err)
	require.Equal(t, "lo", string(p[:n]))
	require.True(t, body.Done())
}

// Everything that one connection carries, cut everywhere: no byte of one message is another's.
func TestBody_Pipelined(t *testing.T) { // 53-55, 131, 132
	messages := []struct{ wire, body string }{
		{"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", ""},
		{"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", ""},
		{"POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "hello"},
		{"POST /4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n1;x\r\nl\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n", "hello"},
		{"\r\nPUT /5 HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\n" + smuggled, smuggled},
		{"POST /6 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""},
		{"HEAD /7 HTTP/1.1\r\nHost: a\r\n\r\n", ""},
	}
	var wire strings.Builder
	for _, m := range messages {
		wire.WriteString(m.wire)
	}
	for i, cut := range pieces(wire.String() + "rest") {
		for _, size := range []int{3, 4096} {
			src := scripted(cut)
			in := h1.NewReader(src)
			for k, m := range messages {
				skipEmptyLines(t, in)
				r := readHead(t, in)
				require.Equal(t, byte('1'+k), r.Path()[1], "cut %d", i)
				f, n := r.Framing()
				var body h1.Body
				body.Reset(in, f, n)
				var got strings.Builder
				_, err := io.CopyBuffer(&got, struct{ io.Reader }{&body}, make([]byte, size))
				require.NoError(t, err, "cut %d", i)
				require.Equal(t, m.body, got.String(), "cut %d", i)
			}
			require.Equal(t, "rest", string(in.Peek())+string(src.rest()), "cut %d", i)
		}
	}
}

func TestBody_WhatFollowsAChunkedBodyIsNeverLost(t *testing.T) {
	for _, n := range []int{0, 1, h1.SmallBuffer - 1, h1.SmallBuffer, h1.SmallBuffer + 1, h1.LargeBuffer - 10, h1.LargeBuffer, 1 << 20} {
		behind := strings.Repeat("n", n)
		src := scripted([]string{"5\r\nhello\r\n0\r\n\r\n" + behind})
		got := readBody(h1.NewReader(src), src, h1.Chunked, 0, 2<<20)
		require.Equal(t, "hello", got.Payload)
		require.Equal(t, n, len(got.Rest))
	}
}
