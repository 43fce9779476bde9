package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Case 317: the process has no descriptor left while its files change.
func TestServe_WantOfDescriptorsRejectsNoFile(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	b, _, _ := backend(t, "B")
	certFile, keyFile := pair(t, t.TempDir(), "one")
	twoCert, twoKey := pair(t, t.TempDir(), "two")
	texts := contents(t, twoCert, twoKey)
	r := runWith(t, route("/", a), "--tls-cert", certFile, "--tls-key", keyFile)
	require.Equal(t, "one", served(t, r.front))

	admin, err := net.Dial("tcp", r.metrics) // it is there before the shortage
	require.NoError(t, err)
	defer admin.Close()
	in := bufio.NewReader(admin)
	failures := func() string {
		io.WriteString(admin, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		page, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(page), "ferryman_config_reloads_total{result=\"failure\"} ")
		require.True(t, found)
		return strings.Fields(rest)[0]
	}
	require.Equal(t, "0", failures())
	var before unix.Rlimit
	pid := r.cmd.Process.Pid
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil))
	r.save(t, route("/", b))
	require.NoError(t, os.WriteFile(certFile, []byte(texts[0]), 0o600))
	require.NoError(t, os.WriteFile(keyFile, []byte(texts[1]), 0o600))
	r.signal(syscall.SIGHUP)
	for range 20 { // some looks
		require.Equal(t, "0", failures())
		<-time.After(100 * time.Millisecond)
	}
	require.NotContains(t, r.output(), "rejected")
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
	poll(t, 5*time.Second, "the new pair", func() bool { return served(t, r.front) == "two" })
	poll(t, 5*time.Second, "the new route", func() bool { return r.metric(`ferryman_upstream_alive{upstream="`+b+`"}`) == "1" })
	require.Equal(t, "0", failures())
	require.NotContains(t, r.output(), "rejected")
}
