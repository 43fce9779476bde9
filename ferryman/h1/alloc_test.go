package h1_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// allocates is a gate on the allocations of f, once warm.
func allocates(t *testing.T, want float64, what string, f func()) {
	t.Helper()
	require.Equal(t, want, testing.AllocsPerRun(200, f), "allocations for %s", what)
}

func TestParse_DoesNotAllocate(t *testing.T) {
	var r h1.Request
	for _, head := range []string{curlHead, browserHead,
		with("Connection: close, x, y\r\n", "X: 1\r\n", "Via: 1.1 a, 1.1 ferryman\r\n", "Expect: 100-continue\r\n", "X_Forwarded.For: 1\r\n"),
		"OPTIONS http://b/x?q HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\n\r\n"} {
		b := []byte(head)
		allocates(t, 0, short(head), func() {
			r.Reset()
			if n, err := r.Parse(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
		})
	}
	for _, head := range []string{"GET / HTTP/1.1\r\nX : 1\r\n\r\n", "\x16\x03\x01", "GET / HTTP/3.0\r\n", with("Content-Length: x\r\n")} {
		b := []byte(head)
		allocates(t, 0, short(head), func() {
			r.Reset()
			if _, err := r.Parse(b); err == nil {
				t.Fatal("accepted")
			}
		})
	}
	var resp h1.Response
	b := []byte(responseHead)
	allocates(t, 0, "a response", func() {
		resp.Reset()
		if n, err := resp.Parse(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
	})
}

func TestAppend_DoesNotAllocate(t *testing.T) {
	r := request(t, browserHead)
	drop := kinds{h1.Host: true, h1.Connection: true}
	dst := make([]byte, 0, 4096)
	allocates(t, 0, "rewriting a head", func() {
		dst = append(append(dst[:0], r.Method()...), ' ')
		dst = r.AppendTarget(dst, 0)
		dst = append(dst, " HTTP/1.1\r\n"...)
		dst = r.AppendKept(dst, &drop)
		dst = h1.AppendField(dst, "Via", "1.1 ferryman")
		dst = h1.AppendLength(dst, 5)
	})
	b := make([]byte, h1.ChunkFront+100+h1.ChunkBack)
	allocates(t, 0, "framing a chunk", func() { h1.Chunk(b, 100) })
}

func TestBody_DoesNotAllocate(t *testing.T) {
	const trailer = "0\r\nX-Checksum: abc\r\n\r\n"
	p := make([]byte, 1024)
	for _, c := range []struct {
		what string
		f    h1.Framing
		wire string
	}{
		{"a length", h1.Length, "hello"},
		{"chunks", h1.Chunked, "5\r\nhello\r\n5;x=y\r\nhello\r\n" + h1.LastChunk},
		{"chunks with a trailer", h1.Chunked, "5\r\nhello\r\n" + trailer},
		{"chunks with more behind", h1.Chunked, "5\r\nhello\r\n" + trailer + curlHead},
		{"the end of the connection", h1.UntilClose, "hello"},
	} {
		wire := []byte(c.wire)
		src := &memory{bytes.NewReader(wire)}
		in := h1.NewReader(src)
		var body h1.Body
		allocates(t, 0, "a body with "+c.what, func() {
			src.Reset(wire)
			in.Reset(src)
			body.Reset(in, c.f, 5)
			for {
				_, err := body.Read(p)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			in.Release()
		})
	}
}

func TestReader_DoesNotAllocate(t *testing.T) {
	wire := []byte(browserHead)
	src := &memory{bytes.NewReader(wire)}
	in := h1.NewReader(src)
	var r h1.Request
	allocates(t, 0, "reading a head", func() {
		src.Reset(wire)
		in.Reset(src)
		r.Reset()
		for done := false; !done; {
			if err := in.Fill(); err != nil {
				t.Fatal(err)
			}
			var err error
			if done, err = in.Request(&r); err != nil {
				t.Fatal(err)
			}
		}
		in.Trim()
	})
}

// A gate that nothing can fail guards nothing.
func TestAllocates_SeesAnAllocation(t *testing.T) {
	var sink *h1.Request
	require.NotZero(t, testing.AllocsPerRun(10, func() { sink = new(h1.Request) }))
	require.NotNil(t, sink)
}
