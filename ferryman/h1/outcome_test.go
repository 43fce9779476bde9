package h1_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// outcome is everything that a parser makes of a head. Two outcomes of the same bytes must be
// equal, however the bytes were cut.
type outcome struct {
	Used    int    // the head's length; 0: not whole, or refused
	Status  int    // of the error; 0: none
	Cause   string // of the error
	Start   string // what the start line says
	Traits  string // flags and numbers
	Framing string
	Fields  []string // "kind name=value"
}

func (o outcome) accepted() bool { return o.Used > 0 && o.Status == 0 }

func failed(err error) outcome {
	var e *h1.Error
	if !errors.As(err, &e) {
		panic(fmt.Sprintf("not an *h1.Error: %v", err))
	}
	return outcome{Status: e.Status, Cause: e.Cause}
}

func fieldsOf(h *h1.Head) (lines []string) {
	for i := range h.Fields {
		f := &h.Fields[i]
		lines = append(lines, fmt.Sprintf("%d %q=%q", f.Kind, h.Name(f), h.ValueOf(f)))
	}
	return lines
}

func outcomeOfRequest(r *h1.Request, used int, err error) outcome {
	if err != nil {
		return failed(err)
	}
	if used == 0 {
		return outcome{}
	}
	f, n := r.Framing()
	return outcome{
		Used:  used,
		Start: fmt.Sprintf("%q %q %q %q", r.Method(), r.AppendTarget(nil, 0), r.Path(), r.Host()),
		Traits: fmt.Sprint(r.Bodiless, r.HeadMethod, r.Connect, r.Options, r.Star, r.Upgrade, r.Continue,
			r.MaxForwards, r.Hops, r.Old(), r.Close(), r.Idempotent()),
		Framing: fmt.Sprint(f, n, r.DeclaredLength(), r.DeclaresChunked()),
		Fields:  fieldsOf(&r.Head),
	}
}

func outcomeOfResponse(r *h1.Response, used int, err error) outcome {
	if err != nil {
		return failed(err)
	}
	if used == 0 {
		return outcome{}
	}
	f, n := r.Framing()
	return outcome{
		Used:    used,
		Start:   fmt.Sprintf("%d %q", r.Status, r.Reason()),
		Traits:  fmt.Sprint(r.Old(), r.Close(), r.Interim()),
		Framing: fmt.Sprint(f, n, r.DeclaredLength(), r.DeclaresChunked()),
		Fields:  fieldsOf(&r.Head),
	}
}

// parser makes an outcome of a head that arrives in pieces: ends are the lengths of what is there
// at each call, the last one all of it.
type parser func(input []byte, ends []int) outcome

// moved is where the bytes of a call lie: another place each time, for a buffer may move.
func moved(b []byte) []byte {
	if len(b) > 4096 {
		return b // or else the tests of the limits take for ever
	}
	return slices.Clone(b)
}

func parseRequest(input []byte, ends []int) outcome {
	var r h1.Request
	r.Reset()
	for _, end := range ends {
		b := moved(input[:end])
		if n, err := r.Parse(b); n > 0 || err != nil {
			return outcomeOfRequest(&r, n, err)
		}
	}
	return outcome{}
}

func parseResponse(input []byte, ends []int) outcome {
	var r h1.Response
	r.Reset()
	for _, end := range ends {
		b := moved(input[:end])
		if n, err := r.Parse(b); n > 0 || err != nil {
			return outcomeOfResponse(&r, n, err)
		}
	}
	return outcome{}
}

// everyCut parses an input whole, cut in two at every place, and byte by byte, and insists that
// the outcome is the same.
func everyCut(t testing.TB, parse parser, input string) outcome {
	t.Helper()
	b := []byte(input)
	whole := parse(b, []int{len(b)})
	for i := 1; i < len(b); i += stride(len(b)) {
		require.Equal(t, whole, parse(b, []int{i, len(b)}), "cut at %d of %s", i, short(input))
	}
	single := make([]int, len(b))
	for i := range single {
		single[i] = i + 1
	}
	require.Equal(t, whole, parse(b, single), "byte by byte: %s", short(input))
	return whole
}

// stride is the distance between two cuts: short inputs are cut everywhere.
func stride(n int) int {
	if n < 1000 {
		return 1
	}
	return n / 23
}

func short(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%q and %d bytes more", s[:200], len(s)-200)
	}
	return fmt.Sprintf("%q", s)
}

// accepts insists that a request is read, and returns what was read.
func accepts(t testing.TB, input string) outcome {
	t.Helper()
	o := everyCut(t, parseRequest, input)
	require.True(t, o.accepted(), "%s: %+v", short(input), o)
	return o
}

// refuses insists that a request is refused with a status, for this cause.
func refuses(t testing.TB, status int, cause, input string) {
	t.Helper()
	o := everyCut(t, parseRequest, input)
	require.Equal(t, outcome{Status: status, Cause: cause}, o, short(input))
}

func acceptsResponse(t testing.TB, input string) outcome {
	t.Helper()
	o := everyCut(t, parseResponse, input)
	require.True(t, o.accepted(), "%s: %+v", short(input), o)
	return o
}

func refusesResponse(t testing.TB, cause, input string) {
	t.Helper()
	o := everyCut(t, parseResponse, input)
	require.NotZero(t, o.Status, short(input))
	require.Equal(t, cause, o.Cause, short(input))
}

// request is parsed whole, for tests that look at the value itself.
func request(t testing.TB, input string) *h1.Request {
	t.Helper()
	r := new(h1.Request)
	r.Reset()
	n, err := r.Parse([]byte(input))
	require.NoError(t, err, short(input))
	require.NotZero(t, n, "not whole: %s", short(input))
	return r
}

func response(t testing.TB, input string) *h1.Response {
	t.Helper()
	r := new(h1.Response)
	r.Reset()
	n, err := r.Parse([]byte(input))
	require.NoError(t, err, short(input))
	require.NotZero(t, n, "not whole: %s", short(input))
	return r
}

// with is a GET with these field lines; each ends in CRLF.
func with(fields ...string) string {
	return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Join(fields, "") + "\r\n"
}

// answer is a 200 with these field lines.
func answer(fields ...string) string {
	return "HTTP/1.1 200 OK\r\n" + strings.Join(fields, "") + "\r\n"
}

// value is the value of the first field of that name, exactly as given.
func value(h *h1.Head, name string) string {
	for i := range h.Fields {
		if f := &h.Fields[i]; string(h.Name(f)) == name {
			return string(h.ValueOf(f))
		}
	}
	return ""
}
