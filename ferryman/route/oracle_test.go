package route_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/route"
)

// The reference: how upstreams read paths, written the slow and obvious way, with nothing in common with
// the code under test.

// decoded is the path after RFC 3986 sections 6.2.2.1 and 6.2.2.2: case and percent-encoding. Malformed
// escapes stay as they are.
func decoded(path string) string {
	parts := strings.Split(path, "%")
	for i, part := range parts[1:] {
		c, err := strconv.ParseUint(part[:min(2, len(part))], 16, 8)
		switch {
		case err != nil || len(part) < 2:
			parts[i+1] = "%" + part
		case strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", rune(c)):
			parts[i+1] = string(rune(c)) + part[2:]
		default:
			parts[i+1] = "%" + strings.ToUpper(part[:2]) + part[2:]
		}
	}
	return strings.Join(parts, "")
}

func malformed(path string) bool {
	for _, part := range strings.Split(path, "%")[1:] {
		if _, err := strconv.ParseUint(part[:min(2, len(part))], 16, 8); err != nil || len(part) < 2 {
			return true
		}
	}
	return false
}

func merged(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// withoutDots is the path after RFC 3986 section 5.2.4.
func withoutDots(in string) string {
	out := ""
	for in != "" {
		switch {
		case strings.HasPrefix(in, "../"):
			in = in[3:]
		case strings.HasPrefix(in, "./"):
			in = in[2:]
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"), in == "/..":
			in = "/" + strings.TrimPrefix(strings.TrimPrefix(in, "/.."), "/")
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
		case in == ".", in == "..":
			in = ""
		default:
			n := strings.IndexByte(in[1:], '/') + 1
			if n == 0 {
				n = len(in)
			}
			out, in = out+in[:n], in[n:]
		}
	}
	return out
}

// readings is the path as upstreams may read it.
func readings(path string) []string {
	return []string{
		path, decoded(path), merged(path), withoutDots(path), withoutDots(decoded(path)),
		merged(decoded(path)), merged(withoutDots(decoded(path))), withoutDots(merged(decoded(path))),
	}
}

// opened is the path as upstreams read it that also decode what delimits segments, take a backslash for a
// slash, or leave parameters out.
func opened(path string) string {
	path = strings.NewReplacer("%2F", "/", "%5C", "/", `\`, "/", "%3B", ";").Replace(decoded(path))
	segments := strings.Split(path, "/")
	for i := range segments {
		segments[i], _, _ = strings.Cut(segments[i], ";")
	}
	return strings.Join(segments, "/")
}

// hasDots reports a segment that some upstream takes away.
func hasDots(path string) bool {
	return slices.ContainsFunc(strings.Split(opened(path), "/"), func(s string) bool { return s == "." || s == ".." })
}

// doubtful reports whether a path must be refused, by the rules of area 15 of the conformance cases.
func doubtful(prefixes []string, path string) bool {
	if path == "*" {
		return false
	}
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, `\#`) || strings.Contains(path, "%00") ||
		malformed(path) {
		return true
	}
	if hasDots(path) {
		return true
	}
	raw, _ := linear(prefixes, path)
	normal, _ := linear(prefixes, merged(decoded(path)))
	return raw != normal
}

// agree compares Resolve, Check and Lookup with the reference.
func agree(t require.TestingT, table *route.Table[string], prefixes []string, path string) {
	prefix, _, ok, err := table.Resolve([]byte(path))
	if doubt := doubtful(prefixes, path); doubt != (err != nil) {
		require.Fail(t, "wrong verdict", "%q on %q: refused: %v, should be: %t", path, prefixes, err, doubt)
	}
	if checked := route.Check([]byte(path)); checked != err && err != route.ErrAmbiguous {
		require.Fail(t, "Check and Resolve differ", "%q: %v and %v", path, checked, err)
	}
	if err != nil || path == "*" {
		return
	}
	lookup, _, found := table.Lookup([]byte(path))
	if lookup != prefix || found != ok {
		require.Fail(t, "Lookup and Resolve differ", "%q on %q: %q and %q", path, prefixes, lookup, prefix)
	}
	if o := opened(path); withoutDots(o) != o {
		require.Fail(t, "upstream leaves a segment out", "%q on %q is %q", path, prefixes, o)
	}
	for i, reading := range readings(path) {
		want, matches := linear(prefixes, reading)
		if want != prefix || matches != ok {
			require.Fail(t, "upstream reads another route", "%q on %q: %q, reading %d is %q: %q", path, prefixes, prefix, i, reading, want)
		}
	}
}

var tokens = []string{
	"/", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", `\`, ";", "?", "#", "%00", "%25", "a", "api", "v1", "A",
	"%61", "%", "%3b", "%5C", // beyond the list of the conformance cases
}

// Oracle R of the conformance cases: all paths of up to three tokens, and many of up to eight.
func TestTable_UpstreamAndRouteNeverDisagree(t *testing.T) {
	tables := [][]string{
		{"/", "/api", "/api/v1", "/ws"},
		{"/a", "/api", "/api/v1/a", "/A"},
		{"/", "/a%2Fapi", "/api;", "/api/%25", "/..."},
	}
	for _, prefixes := range tables {
		table := build(t, prefixes...)
		try := func(path string) {
			path, _, _ = strings.Cut(path, "?") // the caller takes off the query
			agree(t, table, prefixes, path)
		}
		for _, one := range tokens {
			try(one)
			for _, two := range tokens {
				try("/" + one + two)
				for _, three := range tokens {
					try("/" + one + two + three)
				}
			}
		}
		random := rand.New(rand.NewPCG(15, 191))
		for range 10_000 {
			path := "/"
			for range random.IntN(9) {
				// Half of the tokens are those that make interesting paths.
				path += tokens[random.IntN(len(tokens))]
				if random.IntN(2) == 0 {
					path += []string{"/", "api", "a", "%61"}[random.IntN(4)]
				}
			}
			try(path)
		}
	}
}

func TestTable_ReferenceReadsPathsAsTheRFCDoes(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b/c/./../../g": "/a/g", "/../a": "/a", "/a/..": "/", "/.": "/", "/a/./b": "/a/b", "/a//../b": "/a/b",
	} {
		require.Equal(t, want, withoutDots(path), path)
	}
	require.Equal(t, "/a%2F~%E4", decoded("/%61%2f%7e%e4"))
	require.Equal(t, "/a/b/", merged("//a///b//"))
	require.Equal(t, "/a/../.b//c/%25", opened(`/a;x/..%3By%2f.b;/\c%5c%25;z`))
}

func FuzzTable(f *testing.F) {
	f.Add("/\n/api\n/api/v1", "/api//v1/%61")
	f.Add("/\n/a;", "/a;/..%3b%2F.;x%5c..")
	f.Fuzz(func(t *testing.T, lines, path string) {
		if len(lines) > 500 || len(path) > 500 {
			return
		}
		var entries []route.Entry[string]
		var prefixes []string
		for prefix := range strings.SplitSeq(lines, "\n") {
			one := []route.Entry[string]{{Prefix: prefix, Value: prefix}}
			if _, err := route.Build(one); err != nil {
				continue
			}
			if clean := "/" + strings.Trim(prefix, "/"); !slices.Contains(prefixes, clean) {
				entries, prefixes = append(entries, one[0]), append(prefixes, clean)
			}
		}
		table, err := route.Build(entries)
		require.NoError(t, err, fmt.Sprint(prefixes))
		agree(t, table, prefixes, path)
	})
}
