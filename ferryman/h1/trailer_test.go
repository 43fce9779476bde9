package h1_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

func TestTrailer_IsReadAfterTheBody(t *testing.T) { // 47, 121
	for _, c := range []struct {
		lines string
		want  []string
	}{
		{"", nil},
		{"X-T: 1\r\n", []string{`0 "X-T"="1"`}},
		{"X-T:\r\nx-t: \xff\r\n", []string{`0 "X-T"=""`, `0 "x-t"="\xff"`}},
		{"Content-Length: 99\r\nContent-Length: x\r\n", []string{
			fmt.Sprintf(`%d "Content-Length"="99"`, h1.ContentLength), fmt.Sprintf(`%d "Content-Length"="x"`, h1.ContentLength)}},
		{"Transfer-Encoding: x\r\n", []string{fmt.Sprintf(`%d "Transfer-Encoding"="x"`, h1.TransferEncoding)}},
		{"Host: evil\r\nHost: evil\r\n", []string{fmt.Sprintf(`%d "Host"="evil"`, h1.Host), fmt.Sprintf(`%d "Host"="evil"`, h1.Host)}},
		{"Connection: \"x\r\n", []string{fmt.Sprintf(`%d "Connection"="\"x"`, h1.Connection)}},
	} {
		got := everyRead(t, h1.Chunked, 0, "5\r\nhello\r\n0\r\n"+c.lines+"\r\n"+smuggled)
		require.Equal(t, read{Payload: "hello", Rest: smuggled, Trailer: c.want}, got, c.lines)
	}
}

func TestTrailer_Malformed(t *testing.T) { // 47
	many := func(n int) string { return strings.Repeat("X: 1\r\n", n) }
	for lines, cause := range map[string]string{
		" X: 1\r\n":            badName,
		"X : 1\r\n":            badName,
		"no colon\r\n":         badName,
		": 1\r\n":              badName,
		"X: a\x00\r\n":         badValue,
		"X: a\rb\r\n":          badValue,
		"X: 1\n":               bareLF,
		"\n":                   bareLF,
		"X: 1\r\n\n":           bareLF,
		"X: a\r\n b\r\n":       badName,
		many(h1.MaxFields + 1): "too many fields",
		many(10_000):           "too many fields",
		"X: " + strings.Repeat("v", h1.MaxHead) + "\r\n": "head too large",
		"X: " + strings.Repeat("v", 1<<20) + "\r\n":      "head too large",
		"X: " + strings.Repeat("v", 100_000):             "head too large",
	} {
		got := everyRead(t, h1.Chunked, 0, "5\r\nhello\r\n0\r\n"+lines+"\r\n"+smuggled)
		require.Equal(t, read{Payload: "hello", Cause: cause}, got, short(lines))
	}
	got := everyRead(t, h1.Chunked, 0, "0\r\n"+many(h1.MaxFields)+"\r\n")
	require.Len(t, got.Trailer, h1.MaxFields)
}

func TestTrailer_OfExactlyTheLimit(t *testing.T) {
	section := func(size int) string { return "X: " + strings.Repeat("v", size-len("X: \r\n\r\n")) + "\r\n\r\n" }
	got := everyRead(t, h1.Chunked, 0, "0\r\n"+section(h1.MaxHead)+smuggled)
	require.Empty(t, got.Cause)
	require.Equal(t, smuggled, got.Rest)
	require.Equal(t, "head too large", everyRead(t, h1.Chunked, 0, "0\r\n"+section(h1.MaxHead+1)).Cause)
}

func TestTrailer_OnlyOfAChunkedBodyThatEnded(t *testing.T) {
	src := scripted([]string{"5\r\nhello\r\n", "0\r\nX: 1\r\n", "\r\n"})
	in := h1.NewReader(src)
	var body h1.Body
	body.Reset(in, h1.Chunked, 0)
	p := make([]byte, 100)
	for {
		require.Nil(t, body.Trailer())
		if _, err := body.Read(p); err == io.EOF {
			break
		}
	}
	require.Len(t, body.Trailer().Fields, 1)

	body.Reset(in, h1.None, 0) // the next body knows nothing of it
	require.Nil(t, body.Trailer())
	body.Reset(in, h1.Length, 1)
	require.Nil(t, body.Trailer())
}

func TestTrailer_NextBodyStartsAfresh(t *testing.T) {
	wire := "0\r\nA: 1\r\n\r\n" + "1\r\nx\r\n0\r\nB: 2\r\nC: 3\r\n\r\n" + "0\r\n\r\n"
	for _, cut := range pieces(wire) {
		in := h1.NewReader(scripted(cut))
		var body h1.Body
		var got [][]string
		for range 3 {
			body.Reset(in, h1.Chunked, 0)
			_, err := io.ReadAll(&body)
			require.NoError(t, err)
			got = append(got, fieldsOf(body.Trailer()))
		}
		require.Equal(t, [][]string{{`0 "A"="1"`}, {`0 "B"="2"`, `0 "C"="3"`}, nil}, got)
	}
}

func TestTrailer_LargeSectionsAreNotKept(t *testing.T) {
	in := h1.NewReader(scripted([]string{"0\r\nX: " + strings.Repeat("v", 20_000) + "\r\n\r\n"}))
	var body h1.Body
	body.Reset(in, h1.Chunked, 0)
	_, err := io.ReadAll(&body)
	require.NoError(t, err)
	body.Reset(in, h1.None, 0)
	require.LessOrEqual(t, body.TrailerRoom(), h1.SmallBuffer)
}
