package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// output is what the program wrote so far, safe to read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestRun_ServesChecksItselfAndStopsCleanly(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	out, code := &output{}, make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--data-bind", "127.0.0.1:0", "--admin-bind", "127.0.0.1:0", "--instance", "z"}, out)
	}()
	line := regexp.MustCompile(`echo-upstream z: data (\S+), admin (\S+)\n`)
	require.Eventually(t, func() bool { return line.MatchString(out.String()) }, 10*time.Second, time.Millisecond)
	addrs := line.FindStringSubmatch(out.String())

	r, err := http.Get("http://" + addrs[1] + "/echo")
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, r.Body)
	require.NoError(t, r.Body.Close())
	require.Equal(t, "z", r.Header.Get("X-Echo-Instance"))
	require.Equal(t, 0, run(context.Background(), []string{"healthcheck", "--admin-bind", addrs[2]}, io.Discard))

	http.DefaultClient.CloseIdleConnections()
	stop()
	require.Equal(t, 0, <-code)
	require.Equal(t, 1, run(context.Background(), []string{"healthcheck", "--admin-bind", addrs[2]}, io.Discard))
}

func TestRun_SaysWhatIsWrongInOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"port in use", []string{"--data-bind", taken.Addr().String(), "--admin-bind", "127.0.0.1:0"}, 1, "is in use: stop the other program or pass --data-bind"},
		{"argument", []string{"serve"}, 2, `unexpected argument "serve"`},
		{"instance", []string{"--instance", "a b"}, 2, "--instance must be"},
		{"no port", []string{"healthcheck", "--admin-bind", "nowhere"}, 1, "is no host:port"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := &output{}
			require.Equal(t, tc.code, run(context.Background(), tc.args, out))
			require.Contains(t, out.String(), tc.want)
			require.Equal(t, 1, strings.Count(out.String(), "\n"))
		})
	}
}
