//go:build clients

package clients

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func nghttp(t *testing.T, args ...string) string {
	t.Helper()
	r := finish(t, program(t, "nghttp"), append([]string{"--no-verify-peer", "-t", "30"}, args...)...)
	require.Zero(t, r.code, r.stderr)
	for _, end := range []string{"recv RST_STREAM", "recv GOAWAY"} {
		_, told, found := strings.Cut(r.stdout, end)
		require.False(t, found, "%s%.200s", end, told)
	}
	return r.stdout
}

func TestNghttp_APageComesWithAllThatItNeeds(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	everywhere(t, route("/", n.addr), overHTTP2, func(t *testing.T, f *front, _ protocol) {
		out := nghttp(t, "-nvas", f.url+"/page.html", f.url+"/folder/", f.url+"/empty", f.url+"/nothing")
		row := regexp.MustCompile(`(?m)^ *\d+ +\+\S+ +\+\S+ +\S+ +(\d{3}) +(\S+) (/\S*)$`)
		got := map[string]string{}
		for _, m := range row.FindAllStringSubmatch(out, -1) {
			got[m[3]] = m[1] + " " + m[2]
		}
		want := map[string]string{"/folder/": "200 9", "/empty": "200 0", "/script.js": "200 800"}
		for i := range 8 {
			want[fmt.Sprintf("/image%d.png", i)] = fmt.Sprintf("200 %s", nghttpSize(1000*(i+1)))
		}
		for path, size := range want {
			require.Equal(t, size, got[path], "%s in %v", path, got)
		}
		for path, status := range map[string]string{"/page.html": "200 ", "/style.css": "200 ", "/nothing": "404 "} { // compressed
			require.True(t, strings.HasPrefix(got[path], status), "%s in %v", path, got)
		}
		require.Len(t, got, len(want)+3)
	})
}

// nghttpSize is how nghttp prints a number of bytes.
func nghttpSize(n int) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dK", n/1024)
}

func TestNghttp_UploadsWithEveryOptionArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	n, u := nginx(t), uvicorn(t)
	file := sized(t, 3<<20)
	want := sum(t, file)
	everywhere(t, stripped("/nginx", n.addr)+route("/uvicorn", u.addr), overHTTP2, func(t *testing.T, f *front, p protocol) {
		for name, options := range map[string][]string{
			"plain":          {},
			"padding":        {"--padding=200"},
			"trailers":       {"--trailer=x-sum: 1", "--trailer=x-more: 2"},
			"asked":          {"--expect-continue"},
			"without length": {"--no-content-length"},
			"small windows":  {"-w", "16", "-W", "16"},
			"all":            {"--padding=255", "--trailer=x-sum: 1", "--expect-continue", "--no-content-length", "-w", "16", "-W", "16", "--continuation"},
		} {
			t.Run(name, func(t *testing.T) {
				out := nghttp(t, append(options, "-v", "-d", file, f.url+"/uvicorn/sum")...)
				require.Contains(t, out, fmt.Sprintf(`{"bytes": %d, "sha256": %q}`, 3<<20, want))
				to := "put/" + p.name + strings.ReplaceAll(name, " ", "") + f.addr
				out = nghttp(t, append(options, "-v", "-H", ":method: PUT", "-d", file, f.url+"/nginx/"+to)...)
				require.Contains(t, out, ":status: 201")
				require.Equal(t, want, sum(t, filepath.Join(n.dir, to)))
				if strings.Contains(strings.Join(options, " "), "expect") {
					require.Contains(t, out, ":status: 100")
				}
			})
		}
	})
}

// A request whose end comes in a frame of its own, with nothing in it.
func TestNghttp_AnEmptyBodyIsOneForTheUpstream(t *testing.T) {
	t.Parallel()
	u := uvicorn(t)
	everywhere(t, route("/", u.addr), overHTTP2, func(t *testing.T, f *front, _ protocol) {
		for _, method := range []string{"POST", "GET"} {
			out := nghttp(t, "-v", "-H", ":method: "+method, "--no-content-length", "-d", "/dev/null", f.url+"/fields")
			require.Contains(t, out, ":status: 200")
			require.NotContains(t, out, "chunked", method)
			require.Equal(t, method == "POST", strings.Contains(out, `["content-length", "0"]`), method)
		}
	})
}

// A window of one answer's beginning holds nobody else.
func TestNghttp_SmallWindowsBringLargeAnswers(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	everywhere(t, route("/", n.addr), overHTTP2, func(t *testing.T, f *front, _ protocol) {
		out := nghttp(t, "-ns", "-w", "12", "-W", "16", "-m", "4", f.url+"/text.txt", f.url+"/image7.png")
		require.Equal(t, 8, strings.Count(out, " 200 "), out)
	})
}
