//go:build clients

package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// server is one that stands behind ferryman. It can be started again under its address.
type server struct {
	*process
	addr string
	dir  string // of nginx: www, put
	args []string
}

// nextPort walks below the ports that the system gives to who connects: one that is free stays free.
var nextPort atomic.Int32

func freeAddr(t *testing.T) string {
	t.Helper()
	for range 5000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+(os.Getpid()*64+int(nextPort.Add(1)))%12_000)
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	require.Fail(t, "no port is free")
	return ""
}

// serve starts a server and returns when it accepts connections.
func serve(t *testing.T, addr string, args ...string) *server {
	t.Helper()
	s := &server{addr: addr, args: args}
	s.restart(t)
	return s
}

func (s *server) restart(t *testing.T) {
	t.Helper()
	s.process = launch(t, s.args[0], s.args[1:]...)
	eventually(t, 30*time.Second, s.name+" to listen", func(context.Context) error {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			s.mustRun(t)
			return err
		}
		return c.Close()
	})
}

// A folder of files that nginx and http.server serve: a page with what it needs, and a download.
func site(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := func(name string, body []byte) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), body, 0o644))
	}
	page := `<!DOCTYPE html><html><head><link rel="stylesheet" href="/style.css"><script src="/script.js"></script></head><body>`
	for i := range 8 {
		name := fmt.Sprintf("image%d.png", i)
		page += `<img src="/` + name + `">`
		file(name, pattern(1000*(i+1)))
	}
	file("page.html", []byte(page+"</body></html>"))
	file("style.css", bytes.Repeat([]byte("body { color: black }\n"), 500))
	file("script.js", bytes.Repeat([]byte("void 0;\n"), 100))
	file("text.txt", bytes.Repeat([]byte("a line of text that repeats\n"), 2000))
	file("folder/index.html", []byte("a folder\n"))
	file("empty", nil)
	require.NoError(t, os.Symlink(large, filepath.Join(dir, "large")))
	require.NoError(t, os.Symlink(medium, filepath.Join(dir, "medium")))
	return dir
}

func nginx(t *testing.T) *server {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	for _, name := range []string{"tmp", "put"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.Symlink(site(t), filepath.Join(dir, "www")))
	text, err := os.ReadFile("testdata/nginx.conf")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(addr)
	conf := filepath.Join(dir, "nginx.conf")
	config := strings.NewReplacer("DIR", dir, "PORT", port).Replace(string(text))
	require.NoError(t, os.WriteFile(conf, []byte(config), 0o600))
	s := serve(t, addr, program(t, "nginx"), "-e", "stderr", "-p", dir, "-c", conf)
	s.dir = dir
	return s
}

// httpServer answers HTTP/1.0, a connection for each request.
func httpServer(t *testing.T) *server {
	t.Helper()
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	return serve(t, addr, program(t, "python3"), "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", site(t))
}

func gunicorn(t *testing.T, worker string, more ...string) *server {
	t.Helper()
	addr := freeAddr(t)
	args := []string{program(t, "gunicorn"), "--bind", addr, "--chdir", testdata(t), "--worker-class", worker, "--log-level", "warning"}
	return serve(t, addr, append(append(args, more...), "wsgi:application")...)
}

func uvicorn(t *testing.T, more ...string) *server {
	t.Helper()
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	args := []string{program(t, "uvicorn"), "--host", "127.0.0.1", "--port", port, "--app-dir", testdata(t), "--no-access-log"}
	return serve(t, addr, append(append(args, more...), "asgi:application")...)
}

func testdata(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	return dir
}

// pattern is what /bytes answers.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func sum(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	require.NoError(t, err)
	return hex.EncodeToString(h.Sum(nil))
}

// circuitsClosed waits until ferryman has heard from each of them.
func circuitsClosed(t *testing.T, f *front, servers ...*server) {
	t.Helper()
	for _, s := range servers {
		f.becomes(t, s.addr, "closed")
		require.NoError(t, labenv.Answers(t.Context(), "http://"+s.addr+"/"), s.name)
	}
}
