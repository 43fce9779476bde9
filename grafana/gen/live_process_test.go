package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
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

// binary builds one of the lab's programs as it ships: by its own module's requirements.
func binary(t *testing.T, name, module, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", out, pkg)
	cmd.Dir = filepath.Join("../..", module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "build %s: %s", name, said)
	return out
}

// program is one that runs, and what it has printed.
type program struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// start runs a program until the test ends, or kill is called.
func start(t *testing.T, bin string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(bin, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	go p.wait()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			said := p.output()
			t.Logf("%s printed at last:\n%s", filepath.Base(bin), said[max(0, len(said)-3000):])
		}
	})
	return p
}

func (p *program) wait() {
	_ = p.cmd.Wait() // it is killed: its status says nothing
	close(p.exited)
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// find waits until the program printed a match, and returns its first group.
func (p *program) find(t *testing.T, l limit, pattern string) (found string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	l.until(t, func() bool {
		m := re.FindStringSubmatch(p.output())
		if m != nil {
			found = m[1]
		}
		return m != nil
	}, func() string { return "no line like " + pattern + " in\n" + p.output() })
	return found
}

// limit is the moment by which everything must have happened.
type limit struct{ time.Time }

// until polls ok; if it stays false, why says what is missing.
func (l limit) until(t *testing.T, ok func() bool, why func() string) {
	t.Helper()
	for !ok() {
		if time.Now().After(l.Time) {
			require.Fail(t, "not in time", why())
		}
		<-time.After(50 * time.Millisecond)
	}
}

// client has no proxy and keeps no connection for another test.
var client = &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}

// ask sends a request and returns its status and body; 0 where there was no answer.
func ask(ctx context.Context, method, url, body string) (status int, answer string) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	resp, err := client.Do(req)
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

// freeAddr is for programs that do not tell which port they took.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
