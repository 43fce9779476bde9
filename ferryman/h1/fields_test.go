package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const (
	badName  = "malformed field name"
	badValue = "malformed field value"
)

func TestField_LinesThatAreRefused(t *testing.T) { // 18-22, 24-26, 33
	for _, c := range []struct{ lines, cause string }{
		{"X : 1\r\n", badName},
		{"X\t: 1\r\n", badName},
		{"Host : a\r\n", badName},
		{"Content-Length : 0\r\n", badName},
		{"Transfer-Encoding : chunked\r\n", badName},
		{" X: 1\r\n", badName},
		{"\tX: 1\r\n", badName},
		{"X: a\r\n b\r\n", badName},
		{"X: a\r\n\tb\r\n", badName},
		{"X: a\r\n \r\n", badName},
		{"Transfer-Encoding:\r\n chunked\r\n", "unsupported Transfer-Encoding"},
		{"X:\r\n chunked\r\n", badName},
		{"Foo\r\n", badName},
		{"Content-Length 10\r\n", badName},
		{"Na\nme: x\r\n", bareLF},
		{": x\r\n", badName},
		{":\r\n", badName},
		{"::\r\n", badName},
		{"X: a\x00b\r\n", badValue},
		{"X: a\rb\r\n", badValue},
		{"X: a\r\rb\r\n", badValue},
		{"X: a\r\r\n", badValue},
		{"X: \r\r\n", badValue},
		{"X:\r\r\n", badValue},
		{"\rX: a\r\n", badName},
		{"\r\r\n", badName},
		{"Foo: bar\rTransfer-Encoding: chunked\r\n", badValue},
		{"X: a\nY: b\r\n", bareLF},
		{"X: a\n", bareLF},
		{"\n", bareLF},
		{"Foo: b\n\nTransfer-Encoding: chunked\r\n", bareLF},
		{"X:\n\nGET /SMUGGLED HTTP/1.1\r\nHost: a\r\n\r\n", bareLF},
		{"Content-Length\r\n: 5\r\n", badName},
		{"Transfer-\r\nEncoding: chunked\r\n", badName},
	} {
		refuses(t, 400, c.cause, with(c.lines))
		refuses(t, 400, c.cause, with("A: 1\r\n", c.lines, "B: 2\r\n"))
		refuses(t, 400, c.cause, "GET / HTTP/1.1\r\n"+c.lines+"Host: a\r\n\r\n")
		refusesResponse(t, c.cause, answer(c.lines))
		refusesResponse(t, c.cause, answer("A: 1\r\n", c.lines, "B: 2\r\n"))
	}
	refuses(t, 400, bareLF, "GET / HTTP/1.1\nHost: a\n\n")
	refuses(t, 400, bareLF, "GET / HTTP/1.1\nHost: a\r\n\r\n")
	refuses(t, 400, bareLF, "GET / HTTP/1.1\r\nHost: a\r\n\n")
}

func TestField_EveryByteInAName(t *testing.T) { // 23
	for c := range 256 {
		raw := string([]byte{byte(c)})
		for _, name := range []string{"X" + raw + "Y", raw + "X", "X" + raw, "Content-Length" + raw} {
			lines := name + ": 5\r\n"
			switch {
			case strings.Contains(tokenBytes, raw):
				o := accepts(t, with(lines))
				require.Contains(t, o.Fields[1], fmt.Sprintf("%q=%q", name, "5"))
				acceptsResponse(t, answer(lines))
			case c == '\n':
				refuses(t, 400, bareLF, with(lines))
				refusesResponse(t, bareLF, answer(lines))
			case c == ':' && name[0] != ':' && name != "Content-Length:":
				accepts(t, with(lines)) // the name ends there, the rest is value
			case c == ':' && name == "Content-Length:":
				refuses(t, 400, badLength, with(lines))
			default:
				refuses(t, 400, badName, with(lines))
				refusesResponse(t, badName, answer(lines))
			}
		}
	}
}

func TestField_EveryByteInAValue(t *testing.T) { // 24, 25, 27
	for c := range 256 {
		raw := string([]byte{byte(c)})
		// Long enough for every place inside, at the start and at the end of a group of eight bytes.
		for before := range 18 {
			v := "v" + strings.Repeat("v", before) + raw + "tail"
			lines := "X: " + v + "\r\n"
			switch {
			case c == '\n':
				refuses(t, 400, bareLF, with(lines))
			case c < ' ' && c != '\t' || c == 0x7f:
				refuses(t, 400, badValue, with(lines))
				refusesResponse(t, badValue, answer(lines))
			default:
				r := request(t, with(lines))
				require.Equal(t, v, value(&r.Head, "X"))
			}
		}
	}
}

func TestField_BlanksAroundAValueAreNotPartOfIt(t *testing.T) {
	for _, lines := range []string{"X:v\r\n", "X: v\r\n", "X:\tv\r\n", "X: \t v \t \r\n", "X:v \r\n"} {
		r := request(t, with(lines))
		require.Equal(t, "v", value(&r.Head, "X"), lines)
		accepts(t, with(lines))
	}
	for _, lines := range []string{"X:\r\n", "X: \r\n", "X:\t\t\r\n"} {
		r := request(t, with(lines))
		require.Len(t, r.Fields, 2)
		require.Empty(t, value(&r.Head, "X"))
		accepts(t, with(lines))
	}
}

func TestField_NamesAreMatchedWithoutCase(t *testing.T) { // 28
	r := request(t, "GET / HTTP/1.1\r\nhOsT: a\r\ncOnTeNt-LeNgTh: 5\r\nCONNECTION: CLOSE\r\n\r\n")
	require.EqualValues(t, 5, r.DeclaredLength())
	require.True(t, r.Close())
	require.True(t, request(t, with("TRANSFER-ENCODING: chunked\r\n")).DeclaresChunked())
}

func TestField_OrderAndRepetitionStay(t *testing.T) { // 29, 72
	o := accepts(t, with("A: 1\r\n", "B: 2\r\n", "A: 3\r\n", "A:\r\n", "8: \xff\x80\r\n"))
	require.Equal(t, []string{`0 "A"="1"`, `0 "B"="2"`, `0 "A"="3"`, `0 "A"=""`, `0 "8"="\xff\x80"`}, o.Fields[1:])
}

func TestField_Count(t *testing.T) { // 30
	lines := func(n int) string { return strings.Repeat("X: 1\r\n", n) }
	o := accepts(t, with(lines(h1.MaxFields-1)))
	require.Len(t, o.Fields, h1.MaxFields)
	for _, n := range []int{h1.MaxFields, 10_000} {
		refuses(t, 431, "too many fields", with(lines(n)))
	}
	o = acceptsResponse(t, answer(lines(h1.MaxFields)))
	require.Len(t, o.Fields, h1.MaxFields)
	refusesResponse(t, "too many fields", answer(lines(h1.MaxFields+1)))
	// The limit goes before the syntax of the line that is too much.
	refuses(t, 431, "too many fields", with(lines(h1.MaxFields-1), "no colon\r\n"))
}

func TestHead_OfExactlyTheLimit(t *testing.T) { // 31
	pad := func(size int, start string) string {
		return start + "X: " + strings.Repeat("v", size-len(start)-len("X: \r\n\r\n")) + "\r\n\r\n"
	}
	const req, resp = "GET / HTTP/1.1\r\nHost: a\r\n", "HTTP/1.1 200 OK\r\n"
	for _, behind := range []string{"", "GET / HTTP/1.1\r\n"} {
		require.Equal(t, h1.MaxHead, accepts(t, pad(h1.MaxHead, req)+behind).Used)
		require.Equal(t, h1.MaxHead, acceptsResponse(t, pad(h1.MaxHead, resp)+behind).Used)
		for _, over := range []int{1, 2, 3, 1000, 1 << 20} {
			refuses(t, 431, "head too large", pad(h1.MaxHead+over, req)+behind)
			refusesResponse(t, "head too large", pad(h1.MaxHead+over, resp)+behind)
		}
	}
	// What is wrong behind the limit was never looked at.
	over := strings.TrimSuffix(pad(h1.MaxHead+100, req), "\r\n\r\n")
	refuses(t, 431, "head too large", over+"\n\n")
	refuses(t, 431, "head too large", over+"\x00\r\n\r\n")
}

func TestHead_CutShortIsNotWhole(t *testing.T) { // 32
	for _, input := range []string{curlHead, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"} {
		for n := range len(input) {
			require.Equal(t, outcome{}, everyCut(t, parseRequest, input[:n]))
		}
	}
	for n := range len(responseHead) {
		require.Equal(t, outcome{}, everyCut(t, parseResponse, responseHead[:n]))
	}
}
