//go:build clients

package clients

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients that come and are killed, servers that do, in front of a ferryman with the race detector. What it finds
// is in what it printed, which is looked at when it has ended.
func TestRace_NoneIsFoundWhileClientsAndServersAreKilled(t *testing.T) {
	t.Parallel()
	binary, body := build(t, "-race"), sized(t, 300_000)
	for _, engine := range engines {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tls=%t", engine, tls), func(t *testing.T) {
				t.Parallel()
				n, u := nginx(t), uvicorn(t)
				f := startBinary(t, binary, engine, tls, stripped("/nginx", n.addr), route("/uvicorn", u.addr))
				comeAndGo(t, f, body, func() {
					n.kill(t)
					f.becomes(t, n.addr, "open")
					n.restart(t)
					f.becomes(t, n.addr, "closed")
				})
				for _, p := range overAll {
					if p.tls == tls {
						require.Equal(t, 200, fetch(t, p, f.url+"/nginx/text.txt").Code)
						require.Equal(t, 200, fetch(t, p, "-T", body, f.url+"/uvicorn/sum").Code)
					}
				}
			})
		}
	}
}

func comeAndGo(t *testing.T, f *front, body string, meanwhile func()) {
	t.Helper()
	h2load := []string{program(t, "h2load"), "-c", "10", "-m", "30", "-n", "100000000"}
	curl := []string{program(t, "curl"), "-s", "-k", "-o", "/dev/null", "--rate", "50/s"}
	commands := [][]string{
		append(h2load, f.url+"/nginx/hello"),
		append(h2load, "-d", body, f.url+"/uvicorn/sum"),
		append(h2load, "--h1", f.url+"/uvicorn/chunks?n=20&ms=5"),
		append(curl, "--limit-rate", "2M", f.url+"/nginx/large?[1-1000]"),
		append(curl, "-T", filepath.Clean(large), f.url+"/uvicorn/slowly?id=1"),
		append(curl, "-H", "Expect:", "-T", medium, f.url+"/nginx/too-large?[1-1000]"),
	}
	if f.scheme == "https" {
		commands = append(commands, append(curl, "--http1.1", f.url+"/uvicorn/events?n=1000&ms=10"))
	} else {
		commands = append(commands, append(curl, "--http2-prior-knowledge", f.url+"/uvicorn/events?n=1000&ms=10"))
	}
	for round := range 3 {
		var running []*process
		for _, c := range commands {
			running = append(running, launch(t, c[0], c[1:]...))
		}
		answered(t, f, 500)
		if round == 1 {
			meanwhile()
		}
		for _, p := range running {
			p.kill(t)
		}
	}
	eventually(t, 20*time.Second, "all connections of clients to end", func(ctx context.Context) error {
		page, err := f.page(ctx)
		if now := page.Sum("ferryman_connections"); err == nil && now > 0 {
			return fmt.Errorf("%.0f left", now)
		}
		return err
	})
}

// answered waits until f has answered so many requests more.
func answered(t *testing.T, f *front, n float64) {
	t.Helper()
	at := -1.0
	eventually(t, 30*time.Second, "some hundred requests", func(ctx context.Context) error {
		page, err := f.page(ctx)
		now := page.Sum("ferryman_requests_total")
		if err == nil && at < 0 {
			at = now
		}
		if now < at+n {
			return fmt.Errorf("%.0f so far", now-at)
		}
		return err
	})
}
