package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const (
	badSize     = "malformed chunk size"
	badExt      = "malformed chunk extension"
	badChunkEnd = "malformed end of chunk"
	cutShort    = "unexpected EOF"
	smuggled    = "GET /SMUGGLED HTTP/1.1\r\nHost: a\r\n\r\n"
)

func TestChunked_BodiesThatAreAccepted(t *testing.T) { // 41, 42, 45
	for wire, payload := range map[string]string{
		"0\r\n\r\n":                                                           "",
		"5\r\nhello\r\n0\r\n\r\n":                                             "hello",
		"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n":                              "hello world",
		"A\r\n0123456789\r\n0\r\n\r\n":                                        "0123456789",
		"a\r\n0123456789\r\n00\r\n\r\n":                                       "0123456789",
		"0A\r\n0123456789\r\n000\r\n\r\n":                                     "0123456789",
		"000000000000000A\r\n0123456789\r\n0\r\n\r\n":                         "0123456789",
		"2\r\n\r\n\r\n0\r\n\r\n":                                              "\r\n",
		"5\r\n0\r\n\r\n\r\n0000000000000000\r\n\r\n":                          "0\r\n\r\n",
		"5;a=b\r\nhello\r\n0\r\n\r\n":                                         "hello",
		"5;a\r\nhello\r\n0\r\n\r\n":                                           "hello",
		"5;a=\"q;\\\"x\"\r\nhello\r\n0\r\n\r\n":                               "hello",
		"5 ;a\r\nhello\r\n0\r\n\r\n":                                          "hello",
		"5 \t ;\ta = b\t\r\nhello\r\n0;x\r\n\r\n":                             "hello",
		"5;\xff\x80\r\nhello\r\n0\r\n\r\n":                                    "hello",
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 300, strings.Repeat("z", 300)):   strings.Repeat("z", 300),
		"5;" + strings.Repeat("x", h1.MaxChunkExt) + "\r\nhello\r\n0\r\n\r\n": "hello",
	} {
		for _, behind := range []string{"", "x", smuggled} {
			require.Equal(t, read{Payload: payload, Rest: behind}, everyRead(t, h1.Chunked, 0, wire+behind), short(wire))
		}
	}
}

func TestChunked_Sizes(t *testing.T) { // 42, 43
	for _, size := range []string{"", "Z", "-1", "+5", "0x5", "5 5", "5_", "0_2e", " 5", "\t5", "5\x00", "1nonhex-tail",
		"8000000000000000", "FFFFFFFFFFFFFFED", "FFFFFFFFFFFFFFFF", "10000000000000000", "00000000000000005", "5 ", "5\t",
		strings.Repeat("0", 10_000), "g", "G", "@", "`", "/", ":", "5:", "\xff", "\r5", "5\x0b", "5,5", "0x", "5h", "5\xa0"} {
		r := everyRead(t, h1.Chunked, 0, size+"\r\nhello\r\n0\r\n\r\n"+smuggled)
		require.Equal(t, read{Cause: badSize}, r, short(size))
		r = everyRead(t, h1.Chunked, 0, "2\r\nok\r\n"+size+"\r\nhello\r\n0\r\n\r\n"+smuggled)
		require.Equal(t, read{Payload: "ok", Cause: badSize}, r, short(size))
	}
	require.Equal(t, badSize, everyRead(t, h1.Chunked, 0, "\n5\r\nhello\r\n0\r\n\r\n").Cause)
	// The largest size there is promises more than can come.
	require.Equal(t, read{Payload: "hello", Cause: cutShort}, everyRead(t, h1.Chunked, 0, "7FFFFFFFFFFFFFFF\r\nhello"))
}

func TestChunked_EveryByteBehindASize(t *testing.T) { // 43, 44
	for c := range 256 {
		wire := "5" + string([]byte{byte(c)}) + "\r\nhello\r\n0\r\n\r\n"
		got := everyRead(t, h1.Chunked, 0, wire)
		switch {
		case c == ';':
			require.Equal(t, read{Payload: "hello"}, got)
		case strings.IndexByte("0123456789abcdefABCDEF", byte(c)) >= 0:
			require.NotEqual(t, badSize, got.Cause, "%q", wire) // 5 became 5x: the body is short
			require.NotEmpty(t, got.Cause)
		default:
			require.Equal(t, read{Cause: badSize}, got, "%q", wire)
		}
	}
}

func TestChunked_EveryByteBetweenASizeAndItsExtension(t *testing.T) { // 43, 45
	for c := range 256 {
		wire := "5" + string([]byte{byte(c)}) + ";a\r\nhello\r\n0\r\n\r\n"
		got := everyRead(t, h1.Chunked, 0, wire)
		switch {
		case c == ' ' || c == '\t' || c == ';':
			require.Equal(t, read{Payload: "hello"}, got, "%q", wire)
		case strings.IndexByte("0123456789abcdefABCDEF", byte(c)) < 0:
			require.Equal(t, read{Cause: badSize}, got, "%q", wire)
		}
	}
}

func TestChunked_EveryByteInAnExtension(t *testing.T) { // 45
	for c := range 256 {
		wire := "5;a" + string([]byte{byte(c)}) + "b\r\nhello\r\n0\r\n\r\n"
		want := read{Payload: "hello"}
		switch {
		case c == '\r':
			want = read{Cause: badSize}
		case c < ' ' && c != '\t' || c == 0x7f:
			want = read{Cause: badExt}
		}
		require.Equal(t, want, everyRead(t, h1.Chunked, 0, wire), "%q", wire)
	}
	long := "5;" + strings.Repeat("x", h1.MaxChunkExt+1) + "\r\nhello\r\n0\r\n\r\n"
	require.Equal(t, badExt, everyRead(t, h1.Chunked, 0, long).Cause)
	blanks := "5" + strings.Repeat(" ", h1.MaxChunkExt+1) + ";\r\nhello\r\n0\r\n\r\n"
	require.Equal(t, badExt, everyRead(t, h1.Chunked, 0, blanks).Cause)
	again := strings.Repeat("1;"+strings.Repeat("x", h1.MaxChunkExt)+"\r\na\r\n", 3) + "0\r\n\r\n"
	require.Equal(t, read{Payload: "aaa"}, everyRead(t, h1.Chunked, 0, again), "the limit is one chunk's")
}

func TestChunked_LineEnds(t *testing.T) { // 44
	for wire, cause := range map[string]string{
		"5\nhello\r\n0\r\n\r\n":       badSize,
		"5\rXhello\r\n0\r\n\r\n":      badSize,
		"5\r\r;A\r\nhello\r\n0\r\n":   badSize,
		"2\r\r;a\r\nok\r\n0\r\n\r\n":  badSize,
		"5;a\nhello\r\n0\r\n\r\n":     badExt,
		"5;a\r\r\nhello\r\n0\r\n\r\n": badSize,
		"0\n\r\n":                     badSize,
		"0\r\n\n":                     bareLF,
		"0\r\r\n\r\n":                 badSize,
	} {
		require.Equal(t, read{Cause: cause}, everyRead(t, h1.Chunked, 0, wire), "%q", wire)
	}
}

func TestChunked_DataThatDoesNotMatchItsSize(t *testing.T) { // 46
	for _, c := range []struct{ wire, payload, cause string }{
		{"5\r\nhelloX\r\n0\r\n\r\n", "hello", badChunkEnd},
		{"5\r\nhell\r\n0\r\n\r\n", "hell\r", badChunkEnd},
		{"a\r\n0123456789\n0\r\n\r\n", "0123456789", badChunkEnd},
		{"a\r\n0123456789\r0\r\n\r\n", "0123456789", badChunkEnd},
		{"a\r\n0123456789\r\r\n0\r\n\r\n", "0123456789", badChunkEnd},
		{"1\r\nQ  2\r\nok\r\n0\r\n\r\n" + smuggled, "Q", badChunkEnd},
		{"d\r\nabcdefghijklm\r\n\r\n0\r\n\r\n", "abcdefghijklm", badSize},
		{"5\r\nhello0\r\n\r\n", "hello", badChunkEnd},
		{"5\r\nhello\r\n\n0\r\n\r\n", "hello", badSize},
	} {
		require.Equal(t, read{Payload: c.payload, Cause: c.cause}, everyRead(t, h1.Chunked, 0, c.wire), "%q", c.wire)
	}
}

func TestChunked_CutShort(t *testing.T) { // 51, 119
	const wire = "5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nT: 1\r\n\r\n"
	for n := range len(wire) {
		got := everyRead(t, h1.Chunked, 0, wire[:n])
		require.Equal(t, cutShort, got.Cause, "%q", wire[:n])
		require.True(t, strings.HasPrefix("hello!", got.Payload))
	}
	require.Empty(t, everyRead(t, h1.Chunked, 0, wire).Cause)
}
