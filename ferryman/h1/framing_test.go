package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const (
	badLength   = "malformed Content-Length"
	badCoding   = "unsupported Transfer-Encoding"
	twoLengths  = "repeated Content-Length"
	bothFraming = "Content-Length beside Transfer-Encoding"
)

// refusesBoth refuses field lines in a request and in a response.
func refusesBoth(t *testing.T, cause string, lines ...string) {
	t.Helper()
	refuses(t, 400, cause, with(lines...))
	refusesResponse(t, cause, answer(lines...))
}

func TestFraming_LengthBesideCoding(t *testing.T) { // 35, 106
	for _, length := range []string{"5", "0", "30"} {
		cl, te := "Content-Length: "+length+"\r\n", "Transfer-Encoding: chunked\r\n"
		refusesBoth(t, bothFraming, cl, te)
		refusesBoth(t, bothFraming, te, cl)
		refusesBoth(t, bothFraming, te, "X: 1\r\n", "Y: 2\r\n", cl)
		refusesBoth(t, bothFraming, strings.ToLower(cl), strings.ToUpper(te[:18])+te[18:])
	}
}

func TestFraming_Lengths(t *testing.T) { // 36, 37, 38, 105
	for _, v := range []string{"", " ", "+5", "-5", "-1", "-0", "0x5", "5x", "1_0", "1e1", "5.0", "5 5", "0 5", "\xd9\xa5",
		"5\xa0", "5\xc2\xa0", `"5"`, "5, 5", "5,6", "5,", ",5", "0,", "foo", "5;", "5\t5", "18446744073709551621",
		"9223372036854775808", "9999999999999999999", "10000000000000000000", "00000000000000000005",
		strings.Repeat("0", 10_000)} {
		refusesBoth(t, badLength, "Content-Length: "+v+"\r\n")
	}
	for _, v := range []string{"5\x00", "5\x0b", "\x0b5", "5\x0c", "\x015"} {
		refusesBoth(t, badValue, "Content-Length: "+v+"\r\n")
	}
	for _, two := range [][2]string{{"5", "6"}, {"6", "5"}, {"5", "5"}, {"0", "0"}, {"0", "5"}} {
		refusesBoth(t, twoLengths, "Content-Length: "+two[0]+"\r\n", "Content-Length: "+two[1]+"\r\n")
		refusesBoth(t, twoLengths, "Content-Length: "+two[0]+"\r\n", "X: 1\r\n", "content-length: "+two[1]+"\r\n")
	}
	for v, n := range map[string]int64{"0": 0, "5": 5, "005": 5, "010": 10, "0000000000000000005": 5, " 5\t": 5,
		"9223372036854775807": 1<<63 - 1} {
		lines := "Content-Length:" + v + "\r\n"
		accepts(t, with(lines))
		acceptsResponse(t, answer(lines))
		require.Equal(t, n, request(t, with(lines)).DeclaredLength(), v)
		f, length := response(t, answer(lines)).Framing()
		want := h1.Length
		if n == 0 {
			want = h1.None
		}
		require.Equal(t, want, f, v)
		require.Equal(t, n, length, v)
	}
}

func TestFraming_Codings(t *testing.T) { // 48, 49, 107
	for _, v := range []string{"identity", "gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked",
		"chunked, identity", "identity, chunked", "chunked;q=1", "chunked;foo", "chunked ;a", `"chunked"`, "'chunked'",
		"xchunked", "chunk", "chunkedx", "chunked,", ",chunked", ", chunked", "", " ", "chunked\xa0", "\xa0chunked",
		"chu nked", "chunked chunked", "chun\tked", "cHUNKED,", "trailers", "chunked\xc2\xa0"} {
		refusesBoth(t, badCoding, "Transfer-Encoding: "+v+"\r\n")
	}
	for _, v := range []string{"chunked\x0b", "\x0bchunked", "chunked\x00", "\x00chunked", "chunked\x0c", "chunked\r", "\rchunked"} {
		refusesBoth(t, badValue, "Transfer-Encoding: "+v+"\r\n")
	}
	for _, second := range []string{"chunked", "identity", "gzip", "", "x"} {
		refusesBoth(t, badCoding, "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: "+second+"\r\n")
		refusesBoth(t, badCoding, "Transfer-Encoding: "+second+"\r\n", "X: 1\r\n", "transfer-encoding: chunked\r\n")
	}
	for _, v := range []string{"chunked", "cHuNkEd", " \t chunked\t ", "\tCHUNKED"} {
		lines := "Transfer-Encoding:" + v + "\r\n"
		accepts(t, with(lines))
		acceptsResponse(t, answer(lines))
		f, _ := request(t, with(lines)).Framing()
		require.Equal(t, h1.Chunked, f, v)
	}
	refuses(t, 400, "Transfer-Encoding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")
	refusesResponse(t, "Transfer-Encoding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
}

func TestFraming_OfRequests(t *testing.T) { // 39, 40, 50
	for _, m := range []string{"GET", "HEAD", "DELETE", "OPTIONS", "PURGE", "POST"} {
		start := m + " / HTTP/1.1\r\nHost: a\r\n"
		for lines, want := range map[string]h1.Framing{"": h1.None, "Content-Length: 0\r\n": h1.None,
			"Content-Length: 5\r\n": h1.Length, "Transfer-Encoding: chunked\r\n": h1.Chunked} {
			f, _ := request(t, start+lines+"\r\n").Framing()
			require.Equal(t, want, f, "%s %q", m, lines)
		}
	}
	f, _ := request(t, "POST / HTTP/1.0\r\n\r\n").Framing()
	require.Equal(t, h1.None, f, "no body without a length")
	require.True(t, request(t, with()).Bodiless)
	require.False(t, request(t, with("Content-Length: 0\r\n")).Bodiless)
}

func TestFraming_OfResponses(t *testing.T) { // 108, 125-127
	for status, bodiless := range map[int]bool{100: true, 101: true, 103: true, 199: true, 200: false, 204: true,
		205: false, 304: true, 404: false, 500: false, 999: false} {
		for lines, want := range map[string]h1.Framing{"": h1.UntilClose, "Content-Length: 0\r\n": h1.None,
			"Content-Length: 5\r\n": h1.Length, "Transfer-Encoding: chunked\r\n": h1.Chunked} {
			r := response(t, fmt.Sprintf("HTTP/1.1 %d X\r\n%s\r\n", status, lines))
			if bodiless {
				want = h1.None
			}
			f, _ := r.Framing()
			require.Equal(t, want, f, "%d %q", status, lines)
			r.ToHead = true
			f, n := r.Framing()
			require.Equal(t, h1.None, f, "to HEAD: %d %q", status, lines)
			require.Zero(t, n)
		}
	}
}

// The family of disguised framing fields: what stands before, inside or after the name and the
// value of a field, folded, doubled, quoted. Each is refused, or frames nothing and is marked so
// that it goes no further, or is the real field in its one canonical meaning.
func TestFraming_DisguisedFields(t *testing.T) { // 57, 58
	marks := []string{"", " ", "\t", "\x00", "\x0b", "\x0c", "\r", "\n", "\r\n ", "\x7f", "\x80", "\xa0", "\xff", "\xc2\xa0",
		"\"", "'", ",", ";", ":", "=", "_", ".", "-", "x", "%20", "\\", "("}
	seen := map[string]int{}
	for _, real := range []struct{ name, value string }{{"Transfer-Encoding", "chunked"}, {"Content-Length", "5"}} {
		half := len(real.name) / 2
		for _, a := range marks {
			for _, b := range marks {
				for _, line := range []string{
					a + real.name + b + ": " + real.value,
					real.name[:half] + a + real.name[half:] + ":" + b + real.value,
					real.name + ":" + a + real.value + b,
					strings.Replace(real.name, "-", a, 1) + b + ":" + real.value,
					a + real.name + ":" + real.value + b,
				} {
					seen[disguise(t, line)]++
				}
			}
		}
	}
	for _, verdict := range []string{"refused", "real", "alias", "another field"} {
		require.NotZero(t, seen[verdict], "no line was %s: the table tests nothing", verdict)
	}
}

func disguise(t *testing.T, line string) (verdict string) {
	t.Helper()
	input := with(line + "\r\n")
	b := []byte(input)
	o := parseRequest(b, []int{len(b)})
	if !o.accepted() {
		require.Contains(t, []int{0, 400}, o.Status, "%q", line)
		require.NotZero(t, o.Status, "%q", line)
		return "refused"
	}
	r := request(t, input)
	if strings.HasPrefix(line, "\r\n") { // that was the end of the head
		require.Len(t, r.Fields, 1, "%q", line)
		return "behind"
	}
	require.Len(t, r.Fields, 2, "%q", line)
	f := r.Fields[1]
	name := string(r.Name(&f))
	real := strings.EqualFold(name, "Transfer-Encoding") || strings.EqualFold(name, "Content-Length")
	framing, n := r.Framing()
	if real {
		require.True(t, framing == h1.Chunked || framing == h1.Length && n == 5, "%q", line)
		require.True(t, strings.HasPrefix(line, name+":"), "%q", line)
		return "real"
	}
	require.Equal(t, h1.None, framing, "%q", line)
	spelled := strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))
	if spelled == "transfer-encoding" || spelled == "content-length" {
		require.Equal(t, h1.Alias, f.Kind, "%q", line)
		return "alias"
	}
	require.Equal(t, h1.Other, f.Kind, "%q", line)
	return "another field"
}
