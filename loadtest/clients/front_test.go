//go:build clients

package clients

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

var engines = []string{"loops", "goroutines"}

// front is a running ferryman.
type front struct {
	*process
	scheme  string
	addr    string // where clients connect to
	url     string // both
	metrics string
}

// defaults stand above the routes of all tests: quick enough to be watched.
const defaults = "health_interval_secs = 1\nhealth_timeout_secs = 0.9\n"

// route is a line of configuration. More is any keys beside.
func route(prefix, upstream string, more ...string) string {
	return fmt.Sprintf("[[routes]]\nprefix = %q\nupstream = \"http://%s\"\n%s\n", prefix, upstream, strings.Join(more, "\n"))
}

func start(t *testing.T, engine string, tls bool, config ...string) *front {
	t.Helper()
	return startBinary(t, build(t), engine, tls, config...)
}

func startBinary(t *testing.T, binary, engine string, tls bool, config ...string) *front {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ferryman.toml")
	require.NoError(t, os.WriteFile(file, []byte(defaults+strings.Join(config, "")), 0o600))
	args := []string{"--config", file, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0", "--engine", engine}
	scheme := "http"
	if tls {
		args, scheme = append(args, "--tls-cert", cert, "--tls-key", key), "https"
	}
	f := &front{process: launch(t, binary, args...), scheme: scheme}
	f.addr = f.find(t, `clients=(127\.0\.0\.1:\d+)`)
	f.url = scheme + "://" + f.addr
	f.metrics = "http://" + f.find(t, `metrics=(127\.0\.0\.1:\d+)`)
	t.Cleanup(func() { f.drains(t) })
	return f
}

// drains asks for the end, which must come within the drain's limit and leave no trace of a fault.
func (f *front) drains(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(f.cmd.Process.Pid, syscall.SIGTERM))
	select {
	case <-f.exited:
	case <-time.After(10 * time.Second):
		require.Fail(t, "it does not end after SIGTERM")
	}
	text := f.printed()
	for _, fault := range []string{"DATA RACE", "panic", "goroutine 1 ["} {
		require.NotContains(t, text, fault)
	}
}

func (f *front) page(ctx context.Context) (labenv.Page, error) {
	return labenv.ReadPage(ctx, f.metrics+"/metrics")
}

// opened is how often an upstream's circuit has opened.
func (f *front) opened(t *testing.T, upstream string) float64 {
	t.Helper()
	page, err := f.page(t.Context())
	require.NoError(t, err)
	return page.Sum("ferryman_circuit_transitions_total", fmt.Sprintf("upstream=%q", upstream), `to="open"`)
}

func (f *front) becomes(t *testing.T, upstream, state string) {
	t.Helper()
	eventually(t, 20*time.Second, "a circuit that is "+state, func(ctx context.Context) error {
		page, err := f.page(ctx)
		if now := page.Circuit(upstream); err == nil && now != state {
			return fmt.Errorf("it is %s", now)
		}
		return err
	})
}

// protocol is one of the ways in which a client may speak. Curl's option comes with it.
type protocol struct {
	name    string
	tls     bool
	curl    string
	version string // as curl tells it
}

var (
	overHTTP1 = []protocol{{"http1", false, "--http1.1", "1.1"}, {"http1-tls", true, "--http1.1", "1.1"}}
	overHTTP2 = []protocol{{"h2c", false, "--http2-prior-knowledge", "2"}, {"h2-tls", true, "--http2", "2"}}
	overAll   = slices.Concat(overHTTP1, overHTTP2)
	overTLS   = []protocol{overHTTP1[1], overHTTP2[1]}
	// curl 7.88 cannot use a connection of h2c twice, with no server (curl/curl#10634).
	reused = append(slices.Clone(overHTTP1), overHTTP2[1])
)

// everywhere runs body for both engines and all of these protocols, each engine with its two fronts.
func everywhere(t *testing.T, config string, protocols []protocol, body func(t *testing.T, f *front, p protocol)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fronts := map[bool]*front{false: start(t, engine, false, config), true: start(t, engine, true, config)}
			for _, p := range protocols {
				t.Run(p.name, func(t *testing.T) { body(t, fronts[p.tls], p) })
			}
		})
	}
}
