package h1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

func FuzzChunked(f *testing.F) {
	for _, wire := range []string{"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\nGET /", "A;x=y\r\n0123456789\r\n0\r\nT: 1\r\n\r\n", "5\r\nhelloX\r\n",
		"5\nhello\r\n0\r\n\r\n", "5 ;a\r\nhello\r\n0\r\n\r\n", "000000000000000A\r\n0123456789\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\n",
		"1\r\na\r\n1\r\nb\r\n00;q=\"\\\"\"\r\nSet-Cookie: a\r\nX : 1\r\n\r\n", "5\r\nhel", "2\r\n\r\n\r\n0\r\n\n", "5  \r\nhello\r\n0\t\r\n\r\n", "7fffffffffffffff\r\nx",
		"1;" + strings.Repeat("x", 600) + "\r\na\r\n1;" + strings.Repeat("x", 600) + "\r\na\r\n0\r\n\r\n"} {
		f.Add([]byte(wire), uint(3), uint8(2))
	}
	f.Fuzz(func(t *testing.T, wire []byte, cut uint, size uint8) {
		whole := scripted([]string{string(wire)})
		want := readBody(h1.NewReader(whole), whole, h1.Chunked, 0, 32<<10)
		at := int(cut % uint(len(wire)+1))
		src := scripted([]string{string(wire[:at]), string(wire[at:])})
		require.Equal(t, want, readBody(h1.NewReader(src), src, h1.Chunked, 0, int(size)+1), "cut at %d, reads of %d", at, size)
		single := new(script)
		for i := range wire {
			single.pieces = append(single.pieces, wire[i:i+1:i+1])
		}
		require.Equal(t, want, readBody(h1.NewReader(single), single, h1.Chunked, 0, 7), "byte by byte")
		ofResponse := scripted([]string{chunkedAnswer + string(wire)})
		padded := readBody(behindAnswer(t, ofResponse), ofResponse, h1.Chunked, 0, int(size)+1)
		payload, rest, ok := decodeBy(paddedSizeLine, latin1(wire))
		require.Equal(t, ok, padded.Cause == "", "of a response: %q: %+v", wire, padded)
		require.True(t, !ok || payload == latin1([]byte(padded.Payload)) && rest == latin1([]byte(padded.Rest)), "of a response: %q: %+v", wire, padded)
		payload, rest, ok = decodeBy(sizeLine, latin1(wire))
		require.Equal(t, ok, want.Cause == "", "%q: %+v", wire, want)
		if ok {
			require.Equal(t, [2]string{payload, rest}, [2]string{latin1([]byte(want.Payload)), latin1([]byte(want.Rest))}, "%q", wire)
			sameChunksAsNetHTTP(t, wire, want)
			chunkAgain(t, wire, int(size)+1, want)
		}
	})
}

var (
	sizeLine       = regexp.MustCompile("^[0-9A-Fa-f]{1,16}(?:[ \t]*;[\t -~\u0080-\u00ff]*)?$")
	paddedSizeLine = regexp.MustCompile("^[0-9A-Fa-f]{1,16}[ \t]*(?:;[\t -~\u0080-\u00ff]*)?$") // a response's
	trailerLine    = regexp.MustCompile("^" + strings.TrimSuffix(fieldGrammar, "\r\n)*") + ")$")
)

// decodeBy is the grammar of RFC 9112 section 7.1 with the limits of h1, written apart from
// the decoder and without its state. Bytes are runes.
func decodeBy(sizeLine *regexp.Regexp, wire string) (payload, rest string, ok bool) {
	for {
		line, behind, found := strings.Cut(wire, "\r\n")
		digits := len(line) - len(strings.TrimLeft(line, "0123456789abcdefABCDEF"))
		if !found || !sizeLine.MatchString(line) || extension(line[digits:]) > h1.MaxChunkExt {
			return "", "", false
		}
		size, err := strconv.ParseInt(line[:digits], 16, 64)
		if err != nil {
			return "", "", false
		}
		data := []rune(behind)
		if size == 0 {
			rest, ok = trailersStrictly(behind)
			return payload, rest, ok
		}
		if int64(len(data)) < size || !strings.HasPrefix(string(data[size:]), "\r\n") {
			return "", "", false
		}
		payload += string(data[:size])
		wire = string(data[size+2:])
	}
}

// extension is how many bytes of what stands behind a size count as such: its first byte does not.
func extension(line string) int { return len([]rune(line)) - 1 }

func trailersStrictly(wire string) (rest string, ok bool) {
	for lines, size := 0, 0; ; lines++ {
		line, behind, found := strings.Cut(wire, "\r\n")
		size += len([]rune(line)) + 2
		if !found || size > h1.MaxHead {
			return "", false
		}
		if line == "" {
			return behind, true
		}
		if lines == h1.MaxFields || !trailerLine.MatchString(line) {
			return "", false
		}
		wire = behind
	}
}

var blankBeforeExtension = regexp.MustCompile("[0-9a-fA-F][ \t]+;")

// sameChunksAsNetHTTP insists that net/http reads the same out of a body that h1 accepts.
func sameChunksAsNetHTTP(t *testing.T, wire []byte, want read) {
	t.Helper()
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	in := bufio.NewReaderSize(io.MultiReader(strings.NewReader(head), bytes.NewReader(wire)), 1<<20)
	req, err := http.ReadRequest(in)
	require.NoError(t, err)
	payload, err := io.ReadAll(req.Body)
	if err != nil && strings.Contains(err.Error(), "too much non-data") {
		return // many small chunks with long extensions: the cost of reading them is bounded here all the same
	}
	if err != nil && blankBeforeExtension.Match(wire) {
		return // RFC 9112 section 7.1.1 has it, conformance case 45 asks for it, net/http refuses it
	}
	require.NoError(t, err, "%q", wire)
	require.Equal(t, want.Payload, string(payload), "%q", wire)
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, want.Rest, string(rest), "%q", wire)

	var body h1.Body
	body.Reset(h1.NewReader(scripted([]string{string(wire)})), h1.Chunked, 0)
	_, err = io.Copy(io.Discard, &body)
	require.NoError(t, err)
	trailer := http.Header{}
	for i := range body.Trailer().Fields {
		field := &body.Trailer().Fields[i]
		trailer.Add(string(body.Trailer().Name(field)), string(body.Trailer().ValueOf(field)))
	}
	for _, name := range []string{"Transfer-Encoding", "Content-Length", "Trailer"} {
		delete(trailer, name) // net/http drops these itself, and so does AppendTrailer
		delete(req.Trailer, name)
	}
	if len(trailer) > 0 || len(req.Trailer) > 0 {
		require.Equal(t, req.Trailer, trailer, "%q", wire)
	}
}

// chunkAgain encodes a body anew, in chunks of at most size bytes, and reads that.
func chunkAgain(t *testing.T, wire []byte, size int, want read) {
	t.Helper()
	var body h1.Body
	body.Reset(h1.NewReader(scripted([]string{string(wire)})), h1.Chunked, 0)
	var again []byte
	b := make([]byte, h1.ChunkFront+size+h1.ChunkBack)
	for !body.Done() {
		n, err := body.Read(b[h1.ChunkFront : h1.ChunkFront+size])
		if n > 0 {
			again = append(again, h1.Chunk(b, n)...)
		} else if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
	}
	again = h1.AppendTrailer(again, body.Trailer())
	src := scripted([]string{string(again)})
	got := readBody(h1.NewReader(src), src, h1.Chunked, 0, 4096)
	require.Equal(t, want.Payload, got.Payload, "%q", again)
	require.Empty(t, got.Cause, "%q", again)
	require.Empty(t, got.Rest)
	for _, line := range got.Trailer {
		require.Contains(t, want.Trailer, line)
	}
}

func FuzzHost(f *testing.F) {
	for _, h := range append(goodHosts, badHosts...) {
		f.Add([]byte(h))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !h1.ValidHost(b) {
			return
		}
		u, err := url.Parse("http://" + string(b) + "/")
		require.NoError(t, err)
		require.Equal(t, string(b), u.Host)
		require.Nil(t, u.User)
		require.Equal(t, "/", u.Path)
		require.NotEmpty(t, u.Hostname())
		rebuilt := u.Hostname()
		if strings.Contains(rebuilt, ":") {
			rebuilt = "[" + rebuilt + "]"
		}
		if u.Port() != "" {
			rebuilt += ":" + u.Port()
		}
		require.Equal(t, string(b), rebuilt)
	})
}
