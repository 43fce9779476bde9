package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/prometheus"
)

// lab is ferryman in front of three echoes, with the load generator, all as local processes.
type lab struct {
	limit
	dir, proxy    string
	upstreams     [3]string // data address
	admins        [3]string // URL
	ferryman      *program
	metrics, load string // host:port of /metrics
	prometheus    string // URL; "" where it is not installed
	began         time.Time
}

// startLab returns once everything answers. What happens in it takes a minute at most.
func startLab(t *testing.T) *lab {
	t.Helper()
	proxy := binary(t, "ferryman", "ferryman", "./cmd/ferryman")
	echo := binary(t, "echo-upstream", "echo-upstream", ".")
	loadtest := binary(t, "loadtest", ".", "./loadtest/cmd/loadtest")
	l := &lab{limit: limit{time.Now().Add(time.Minute)}, dir: t.TempDir(), load: freeAddr(t), began: time.Now()}
	for i, name := range []string{"a", "b", "c"} {
		p := start(t, echo, "--data-bind", "127.0.0.1:0", "--admin-bind", "127.0.0.1:0", "--instance", "echo-"+name)
		l.upstreams[i] = p.find(t, l.limit, `data ([0-9.:]+),`)
		l.admins[i] = "http://" + p.find(t, l.limit, `admin ([0-9.:]+)`)
	}
	l.configure(t, l.config())
	l.ferryman = start(t, proxy, "--config", filepath.Join(l.dir, "ferryman.toml"), "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0")
	l.proxy = "http://" + l.ferryman.find(t, l.limit, `listening clients=([0-9.:]+)`)
	l.metrics = l.ferryman.find(t, l.limit, `metrics=([0-9.:]+)`)
	l.startPrometheus(t)
	args := []string{"-c", "60", "-t", "1", "-R", "90", "-d", "1h", "--mode", "pool", "--quiet", "--metrics-bind", l.load}
	for _, path := range []string{"/svc-a/echo", "/svc-b/echo", "/svc-c/echo"} {
		args = append(args, l.proxy+path)
	}
	start(t, loadtest, args...)
	l.until(t, func() bool {
		status, _ := ask(t.Context(), "GET", "http://"+l.load+"/metrics", "")
		return status == 200
	},
		func() string { return "the load generator shows no metrics" })
	return l
}

// config is quick where the lab's own is slow enough to watch.
func (l *lab) config() string {
	text := "health_interval_secs = 1\nhealth_timeout_secs = 0.5\ndefault_cooldown_secs = 2\nupstream_timeout_secs = 1\n"
	for i, name := range []string{"a", "b", "c"} {
		text += fmt.Sprintf("[[routes]]\nprefix = \"/svc-%s\"\nupstream = \"http://%s\"\n", name, l.upstreams[i])
	}
	return text
}

func (l *lab) configure(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(l.dir, "ferryman.toml")
	require.NoError(t, os.WriteFile(name+".new", []byte(text), 0o644))
	require.NoError(t, os.Rename(name+".new", name))
}

// fault sets the fault of one echo; "" heals.
func (l *lab) fault(t *testing.T, echo int, fault string) {
	t.Helper()
	method := "PUT"
	if fault == "" {
		method = "DELETE"
	}
	status, answer := ask(t.Context(), method, l.admins[echo]+"/fault", fault)
	require.Equal(t, 200, status, answer)
}

// reload saves a configuration and waits until ferryman has counted it as a success or a failure.
func (l *lab) reload(t *testing.T, text, result string) {
	t.Helper()
	series := `ferryman_config_reloads_total{result="` + result + `"}`
	before := l.line(t, series)
	l.configure(t, text)
	l.until(t, func() bool { return l.line(t, series) != before }, func() string { return "no reload: " + result })
}

// line is the line of ferryman's page that starts with series.
func (l *lab) line(t *testing.T, series string) string {
	t.Helper()
	_, page := ask(t.Context(), "GET", "http://"+l.metrics+"/metrics", "")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, series) {
			return line
		}
	}
	return ""
}

// leaveEarly sends requests and goes away before their answers, until the returned function is called.
func (l *lab) leaveEarly(t *testing.T, path string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for ctx.Err() == nil {
				patience, done := context.WithTimeout(ctx, 100*time.Millisecond)
				ask(patience, http.MethodGet, l.proxy+path, "")
				done()
			}
		})
	}
	return func() { cancel(); clients.Wait() }
}

// targets are what Prometheus scrapes.
func (l *lab) targets() map[string][]prometheus.Target {
	jobs := map[string][]prometheus.Target{
		"ferryman": {{Instance: "ferryman", Addr: l.metrics}}, "loadtest": {{Instance: "loadtest", Addr: l.load}},
	}
	for i, name := range []string{"a", "b", "c"} {
		jobs["echo"] = append(jobs["echo"], prometheus.Target{Instance: "echo-" + name, Addr: strings.TrimPrefix(l.admins[i], "http://")})
	}
	return jobs
}
