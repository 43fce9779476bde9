//go:build clients

package clients

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each server with an answer that takes long enough to be cut: files for a reader that is not quick, and answers
// of unknown length.
var restarted = []struct {
	name   string
	launch func(*testing.T) *server
	path   string
	size   int
}{
	{"nginx", nginx, "/medium", mediumSize},
	{"http.server", httpServer, "/medium", mediumSize},
	{"gunicorn sync", func(t *testing.T) *server { return gunicorn(t, "sync", "--workers", "6") }, "/chunks", slowChunks},
	{"gunicorn gthread", func(t *testing.T) *server { return gunicorn(t, "gthread", "--threads", "12") }, "/chunks", slowChunks},
	{"uvicorn", func(t *testing.T) *server { return uvicorn(t) }, "/chunks", slowChunks},
}

const slowChunks = 40 * 1000 * 8 // what ?n=40&times=1000 comes to

// One client for each engine and protocol asks all the while, as curl does with a list of URLs.
func TestRestart_TheCircuitClosesAgainAndNoHalfLooksWhole(t *testing.T) {
	for _, r := range restarted {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := r.launch(t)
			var fronts []*front
			var clients []*process
			for _, engine := range engines {
				f := start(t, engine, true, route("/", s.addr))
				fronts = append(fronts, f)
				for _, p := range overTLS {
					clients = append(clients, launch(t, program(t, "curl"), "-s", p.curl, "--cacert", cert, "--rate", "20/s", "--limit-rate", "20M",
						"-o", "/dev/null", "-w", "%{stderr}%{http_code} %{exitcode} %{size_download}\\n", f.url+r.path+"?n=40&times=1000&ms=15&i=[1-100000]"))
				}
			}
			whole := fmt.Sprintf("200 0 %d\n", r.size)
			await := func(n int, line string) {
				t.Helper()
				for _, c := range clients {
					was := strings.Count(c.printed(), line)
					eventually(t, 30*time.Second, "answers like "+line, func(context.Context) error {
						if now := strings.Count(c.printed(), line) - was; now < n {
							return fmt.Errorf("%d of %d", now, n)
						}
						return nil
					})
				}
			}
			await(2, whole)
			s.kill(t)
			for _, f := range fronts {
				f.becomes(t, s.addr, "open")
			}
			await(3, "503 0 ")
			s.restart(t)
			for _, f := range fronts {
				f.becomes(t, s.addr, "closed")
			}
			await(2, whole)
			for _, c := range clients {
				c.kill(t)
				judgeRestart(t, c.printed(), r.size)
			}
		})
	}
}

// judgeRestart looks at each of a client's transfers: complete, refused or visibly broken.
func judgeRestart(t *testing.T, told string, size int) {
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(told) {
		var status, exit, got int
		if n, _ := fmt.Sscanf(line, "%d %d %d\n", &status, &exit, &got); n != 3 {
			continue // the client was killed here
		}
		switch {
		case exit != 0:
			seen["broken"]++
		case status == 200:
			require.Equal(t, size, got, "a part of an answer looks whole")
			seen["whole"]++
		default:
			require.Contains(t, []int{502, 503}, status)
			seen["refused"]++
		}
	}
	t.Logf("%v", seen)
	require.Positive(t, seen["broken"], "nothing was cut")
}
