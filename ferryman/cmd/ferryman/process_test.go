package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be ferryman, for what needs a process: signals and exit status.
func TestMain(m *testing.M) {
	if os.Getenv("FERRYMAN_TEST_PROCESS") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a running ferryman and what it has printed so far.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(self, args...), exited: make(chan struct{})}
	// The race detector sleeps for a second at exit unless told otherwise.
	p.cmd.Env = append(os.Environ(), "FERRYMAN_TEST_PROCESS=1", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("%v printed:\n%s", args, p.output())
		}
		require.NotContains(t, p.output(), "goroutine 1 [", "a stack trace")
	})
	return p
}

// patience is how long a test waits for what must happen; nothing waits that long if it does.
const patience = 15 * time.Second

// poll waits for ok, at most within d.
func poll(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !ok(); <-time.After(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not within %v: %s", d, what)
	}
}

// find waits until what it printed matches, and returns the first group.
func (p *process) find(pattern string) string {
	p.t.Helper()
	re, found := regexp.MustCompile(pattern), ""
	poll(p.t, 10*time.Second, pattern, func() bool {
		if m := re.FindStringSubmatch(p.output()); m != nil {
			found = m[len(m)-1]
			return true
		}
		select {
		case <-p.exited:
			require.Fail(p.t, "it ended", p.output())
		default:
		}
		return false
	})
	return found
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// status waits for the end.
func (p *process) status(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		require.Fail(p.t, "still running", p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}

// running is a ferryman with a configuration file, and its addresses.
type running struct {
	*process
	config, front, metrics string
}

func runWith(t *testing.T, config string, args ...string) *running {
	t.Helper()
	r := &running{config: filepath.Join(t.TempDir(), "config.toml")}
	r.save(t, config)
	r.process = launch(t, append([]string{"--config", r.config, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0"}, args...)...)
	r.front = r.find(`"?msg"?[=:]"?listening"?[ ,]"?clients"?[=:]"?([0-9.:]+)`)
	r.metrics = r.find(`"?metrics"?[=:]"?([0-9.:]+)`)
	return r
}

func (r *running) save(t *testing.T, config string) {
	t.Helper()
	require.NoError(t, os.WriteFile(r.config+".new", []byte(config), 0o644))
	require.NoError(t, os.Rename(r.config+".new", r.config))
}

// metric is the value of a series, as the metrics page prints it.
func (r *running) metric(series string) string {
	r.t.Helper()
	_, body := get(r.t, "http://"+r.metrics+"/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fetch is a request on a connection of its own. Status 0 is no answer.
func fetch(method, url string) (status int, body string) {
	transport := &http.Transport{DisableKeepAlives: true}
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	status, body = fetch(http.MethodGet, url)
	require.NotZero(t, status, body)
	return status, body
}

// route is the configuration of one route.
func route(prefix, upstream string) string {
	return "[[routes]]\nprefix = \"" + prefix + "\"\nupstream = \"http://" + upstream + "\"\n"
}

// backend answers with its name. A request for /wait reports on waiting and is held until
// release is closed.
func backend(t *testing.T, name string) (addr string, waiting, release chan struct{}) {
	t.Helper()
	waiting, release = make(chan struct{}, 16), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			waiting <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		io.WriteString(w, name)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), waiting, release
}
