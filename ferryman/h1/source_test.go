package h1_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// script is a Source that hands out its pieces one per read, then its end.
type script struct {
	pieces  [][]byte
	end     error // nil: io.EOF
	waits   int   // calls of Await
	onAwait func()
}

func (s *script) Await() error {
	s.waits++
	if s.onAwait != nil {
		s.onAwait()
	}
	return nil
}

func (s *script) Read(p []byte) (int, error) {
	for len(s.pieces) > 0 && len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	if len(s.pieces) == 0 {
		if s.end == nil {
			return 0, io.EOF
		}
		return 0, s.end
	}
	n := copy(p, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	return n, nil
}

func (s *script) rest() (b []byte) {
	for _, p := range s.pieces {
		b = append(b, p...)
	}
	return b
}

// pieces cuts b in two at every place, and into many small pieces; whole goes first.
func pieces(b string) (all [][]string) {
	all = append(all, []string{b})
	for i := 1; i < len(b); i += stride(len(b)) {
		all = append(all, []string{b[:i], b[i:]})
	}
	sizes := []int{1, 2, 3, 7}
	if len(b) > 100_000 {
		sizes = []int{1000}
	}
	for _, size := range sizes {
		var cut []string
		for rest := b; len(rest) > 0; {
			n := min(size, len(rest))
			cut = append(cut, rest[:n])
			rest = rest[n:]
		}
		all = append(all, append(cut, ""))
	}
	return all
}

func scripted(cut []string) *script {
	s := new(script)
	for _, p := range cut {
		s.pieces = append(s.pieces, []byte(p))
	}
	return s
}

// read is what a body turned out to be.
type read struct {
	Payload string
	Cause   string   // "": it ended properly
	Rest    string   // what follows a body that ended properly
	Trailer []string // as of fieldsOf
}

// readBody reads a body to its end, with a buffer of size bytes.
func readBody(in *h1.Reader, src *script, f h1.Framing, length int64, size int) read {
	var body h1.Body
	body.Reset(in, f, length)
	var r read
	var payload []byte
	p := make([]byte, size)
	for {
		n, err := body.Read(p)
		payload = append(payload, p[:n]...)
		if err == nil {
			continue
		}
		r.Payload = string(payload)
		var syntax *h1.Error
		switch {
		case err == io.EOF:
			if trailer := body.Trailer(); trailer != nil {
				r.Trailer = fieldsOf(trailer)
			}
			if !body.Done() {
				panic("io.EOF but not done")
			}
			r.Rest = string(in.Peek()) + string(src.rest())
		case errors.As(err, &syntax):
			r.Cause = syntax.Cause
		default:
			r.Cause = err.Error()
		}
		if _, again := body.Read(p); again != err {
			panic(fmt.Sprintf("not sticky: %v, then %v", err, again))
		}
		return r
	}
}

// everyRead reads a body from every cut of its bytes, with small and large buffers, directly and
// behind a head in the same reader, and insists that the result is the same.
func everyRead(t testing.TB, f h1.Framing, length int64, wire string) read {
	t.Helper()
	whole := scripted([]string{wire})
	want := readBody(h1.NewReader(whole), whole, f, length, 32<<10)
	for i, cut := range pieces(wire) {
		for _, size := range []int{1, 2, 5, 64, 32 << 10} {
			if size < 64 && i%17 != 0 {
				continue // small buffers with some cuts only, to save time
			}
			src := scripted(cut)
			require.Equal(t, want, readBody(h1.NewReader(src), src, f, length, size), "cut %d, reads of %d: %s", i, size, short(wire))
		}
		const head = "POST / HTTP/1.1\r\nHost: a\r\n\r\n"
		src := scripted(append([]string{head + cut[0]}, cut[1:]...))
		in := h1.NewReader(src)
		readHead(t, in)
		require.Equal(t, want, readBody(in, src, f, length, 64), "cut %d behind a head: %s", i, short(wire))
	}
	return want
}

// skipEmptyLines drops the empty lines before a head, and returns how many there were.
func skipEmptyLines(t testing.TB, in *h1.Reader) (lines int) {
	t.Helper()
	for {
		n, half := in.SkipEmptyLines(1 << 20)
		if lines += n; in.Buffered() > 0 && !half {
			return lines
		}
		require.NoError(t, in.Fill())
	}
}

// readHead reads one request head from in.
func readHead(t testing.TB, in *h1.Reader) *h1.Request {
	t.Helper()
	r := new(h1.Request)
	r.Reset()
	for {
		done, err := in.Request(r)
		require.NoError(t, err)
		if done {
			return r
		}
		require.NoError(t, in.Fill())
	}
}
