//go:build clients

package clients

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each function of testdata/client.py is a check.
var pythonChecks = []string{
	"keep_alive", "chunked_upload", "close", "http10", "pipelined", "slow_reader", "refused_upload", "file_upload",
	"events", "websocket",
}

func TestPython_HTTPClientIsServed(t *testing.T) {
	t.Parallel()
	needsWebSockets(t)
	n, u, files := nginx(t), uvicorn(t), httpServer(t)
	sync, threads := gunicorn(t, "sync", "--workers", "3"), gunicorn(t, "gthread", "--threads", "8")
	config := stripped("/nginx", n.addr) + stripped("/files", files.addr) + route("/uvicorn", u.addr) + route("/sync", sync.addr) +
		route("/gthread", threads.addr) + route("/ws", u.addr, "upgrade = true")
	script := filepath.Join(testdata(t), "client.py")
	everywhere(t, config, overHTTP1, func(t *testing.T, f *front, _ protocol) {
		host, port, err := net.SplitHostPort(f.addr)
		require.NoError(t, err)
		for _, check := range pythonChecks {
			t.Run(check, func(t *testing.T) {
				r := finish(t, program(t, "python3"), script, check, host, port, f.scheme)
				require.Zero(t, r.code, "%.2000s", r.stderr)
			})
		}
	})
}
