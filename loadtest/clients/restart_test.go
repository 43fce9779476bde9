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
						"-o", "/dev/null", "-w", "%{stderr}%{http_code} %{exitcode} %{size_download}\n", f.url+r.path+"?n=40&times=1000&ms=15&i=[1-100000]"))
				}
			}
			whole := fmt.Sprintf("200 0 %d\n", r.size)
			await(t, clients, 1, whole)
			// What is cut was not in a buffer yet: another try may be due.
			for try := 0; try < 4 && judgeRestart(t, clients, r.size) == 0; try++ {
				s.kill(t)
				for _, f := range fronts {
					f.becomes(t, s.addr, "open")
				}
				await(t, clients, 3, "503 0 ")
				s.restart(t)
				for _, f := range fronts {
					f.becomes(t, s.addr, "closed")
				}
				await(t, clients, 1, whole)
			}
			for _, c := range clients {
				c.kill(t)
			}
			require.Positive(t, judgeRestart(t, clients, r.size), "nothing was cut")
		})
	}
}

// await waits until each client tells of n more transfers with this outcome.
func await(t *testing.T, clients []*process, n int, outcome string) {
	t.Helper()
	for _, c := range clients {
		was := strings.Count(c.printed(), outcome)
		eventually(t, 30*time.Second, "answers like "+outcome, func(context.Context) error {
			if now := strings.Count(c.printed(), outcome) - was; now < n {
				return fmt.Errorf("%d of %d", now, n)
			}
			return nil
		})
	}
}

// judgeRestart looks at each of the clients' transfers, which are complete, refused or visibly broken, and counts
// the latter.
func judgeRestart(t *testing.T, clients []*process, size int) (broken int) {
	t.Helper()
	for _, c := range clients {
		for line := range strings.Lines(c.printed()) {
			var status, exit, got int
			if n, _ := fmt.Sscan(line, &status, &exit, &got); n != 3 || !strings.HasSuffix(line, "\n") {
				continue // it is being written
			}
			switch {
			case exit != 0 && status == 200:
				broken++
			case exit == 0 && status == 200:
				require.Equal(t, size, got, "a part of an answer looks whole")
			case exit == 0:
				require.Contains(t, []int{502, 503}, status)
			}
		}
	}
	return broken
}
