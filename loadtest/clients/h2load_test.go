//go:build clients

package clients

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Twenty clients with fifty or two hundred streams each, so that there are more than nginx has room for in its
// queue of connections. These tests are not parallel: they need both processors.
func TestH2load_NothingFails(t *testing.T) {
	n := nginx(t)
	body := sized(t, 3000)
	for _, engine := range engines {
		for _, scheme := range []string{"http", "https"} {
			for _, run := range []struct {
				name, total string
				options     []string
			}{
				{"50 streams", "20000", []string{"-m", "50", "/hello"}},
				{"200 streams", "20000", []string{"-m", "200", "/hello"}},
				{"large ones", "1000", []string{"-m", "50", "/image7.png", "/text.txt"}},
				{"uploads", "5000", []string{"-m", "50", "-d", body, "/hello"}},
				{"small windows", "1000", []string{"-m", "50", "-w", "12", "-W", "14", "/image7.png"}},
				{"http1", "10000", []string{"--h1", "-m", "1", "/hello"}},
				{"pipelines", "10000", []string{"--h1", "-m", "10", "/hello"}},
			} {
				t.Run(engine+"/"+scheme+"/"+run.name, func(t *testing.T) {
					f := start(t, engine, scheme == "https", route("/", n.addr))
					args := []string{"-c", "20", "-n", run.total}
					for _, option := range run.options {
						if strings.HasPrefix(option, "/") && option != body {
							option = f.url + option
						}
						args = append(args, option)
					}
					judgeH2load(t, finish(t, program(t, "h2load"), args...), run.total)
					require.Zero(t, f.opened(t, n.addr), "no circuit has opened")
				})
			}
		}
	}
}

func judgeH2load(t *testing.T, r result, total string) {
	t.Helper()
	require.Zero(t, r.code, r.stderr)
	told := func(name string) string {
		_, rest, _ := strings.Cut(r.stdout, name+": ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	require.Equal(t, strings.ReplaceAll("N total, N started, N done, N succeeded, 0 failed, 0 errored, 0 timeout", "N", total), told("requests"))
	require.Equal(t, total+" 2xx, 0 3xx, 0 4xx, 0 5xx", told("status codes"))
}
