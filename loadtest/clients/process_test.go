//go:build clients

package clients

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// packages are Debian's, by the program that is wanted of them.
var packages = map[string]string{
	"chromium": "chromium", "curl": "curl", "gunicorn": "gunicorn", "h2load": "nghttp2-client", "nghttp": "nghttp2-client",
	"nginx": "nginx-light", "python3": "python3", "uvicorn": "uvicorn",
}

// program finds one of Debian's. Another python3 that comes first in the path does not have Debian's modules.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/usr/bin", "/usr/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	require.NoError(t, err, "%s is missing: apt-get install %s", name, packages[name])
	return path
}

// needsWebSockets is for who uses Python's module of that name: uvicorn starts without it as well.
func needsWebSockets(t *testing.T) {
	t.Helper()
	r := finish(t, program(t, "python3"), "-c", "import websockets")
	require.Zero(t, r.code, "websockets is missing: apt-get install python3-websockets: %s", r.stderr)
}

// process is a program in the background, in a group of its own that ends with the test.
type process struct {
	name   string
	log    string // a file
	cmd    *exec.Cmd
	exited chan struct{}
}

func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, log: filepath.Join(t.TempDir(), filepath.Base(name)+".log"), exited: make(chan struct{})}
	out, err := os.Create(p.log)
	require.NoError(t, err)
	defer out.Close()
	p.cmd = exec.Command(name, args...)
	// The race detector sleeps for a second at exit unless told otherwise; compiled Python would stay in testdata.
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.cmd.Start())
	go p.reap()
	t.Cleanup(func() {
		if t.Failed() {
			text := p.printed()
			t.Logf("%s %v printed:\n%s", name, args, text[max(0, len(text)-4000):])
		}
		p.kill(t)
	})
	return p
}

func (p *process) reap() {
	_ = p.cmd.Wait()
	close(p.exited)
}

func (p *process) printed() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

// find waits until what p printed matches, and returns the first group.
func (p *process) find(t *testing.T, pattern string) string {
	t.Helper()
	re, found := regexp.MustCompile(pattern), ""
	eventually(t, 30*time.Second, p.name+" to print "+pattern, func(context.Context) error {
		if m := re.FindStringSubmatch(p.printed()); m != nil {
			found = m[len(m)-1]
			return nil
		}
		p.mustRun(t)
		return errors.New("not yet")
	})
	return found
}

func (p *process) mustRun(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
		require.Fail(t, p.name+" has ended", p.printed())
	default:
	}
}

// kill ends the group at once and waits until nobody of it is left.
func (p *process) kill(t *testing.T) {
	t.Helper()
	group := -p.cmd.Process.Pid
	eventually(t, 10*time.Second, "the end of "+p.name, func(context.Context) error {
		if err := syscall.Kill(group, syscall.SIGKILL); err != nil {
			return nil // there is no such group any more
		}
		return errors.New("its group is still there")
	})
	<-p.exited
}

// result is what a program came to.
type result struct {
	code           int
	stdout, stderr string
}

// finish runs a program to its end, which comes within a minute.
func finish(t *testing.T, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "%s %v did not end: %s", name, args, stderr.String())
	r := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		require.NoError(t, err)
	}
	return r
}

func eventually(t *testing.T, limit time.Duration, what string, ready func(context.Context) error) {
	t.Helper()
	require.NoError(t, labenv.Until(context.WithoutCancel(t.Context()), limit, what, ready))
}
