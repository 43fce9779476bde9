package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// unread is a pipe of 4 KiB whose far end is only read by the test.
func unread(t *testing.T) (far, near *os.File) {
	t.Helper()
	far, near, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { far.Close() })
	size, err := unix.FcntlInt(near.Fd(), unix.F_SETPIPE_SZ, 4096)
	require.NoError(t, err)
	require.Equal(t, 4096, size)
	return far, near
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// launchUnread starts a ferryman whose output nobody reads, and returns its far ends.
func launchUnread(t *testing.T, args ...string) (p *process, stdout, stderr *os.File) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p = &process{t: t, cmd: exec.Command(self, args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "FERRYMAN_TEST_PROCESS=1", "GORACE=atexit_sleep_ms=0")
	stdout, near1 := unread(t)
	stderr, near2 := unread(t)
	defer near1.Close()
	defer near2.Close()
	p.cmd.Stdout, p.cmd.Stderr = near1, near2
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
	})
	return p, stdout, stderr
}

// flood is a ferryman that has logged more than anybody takes: a circuit flaps, at debug.
func flood(t *testing.T, upstream string, args ...string) (r *running, stderr *os.File) {
	t.Helper()
	r = &running{config: filepath.Join(t.TempDir(), "config.toml"), front: freeAddress(t), metrics: freeAddress(t)}
	r.save(t, "failure_threshold = 1\nhealth_interval_secs = 0.2\nhealth_timeout_secs = 0.1\n"+
		route("/", upstream)+route("/flap", freeAddress(t))+"cooldown_secs = 0.001\n")
	args = append([]string{"--config", r.config, "--bind", r.front, "--metrics-bind", r.metrics, "--log-level", "debug"}, args...)
	r.process, _, stderr = launchUnread(t, args...)
	poll(t, 10*time.Second, "it serves", func() bool { status, _ := fetch("GET", "http://"+r.front+"/"); return status == 200 })
	c, err := net.Dial("tcp", r.front)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	poll(t, 60*time.Second, "lines are lost", func() bool {
		for range 200 {
			c.SetDeadline(time.Now().Add(10 * time.Second))
			io.WriteString(c, "GET /flap HTTP/1.1\r\nHost: a\r\n\r\n")
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
		}
		return r.lost() > 0
	})
	return r, stderr
}

// lost is how many lines were.
func (r *running) lost() int {
	r.t.Helper()
	n, err := strconv.Atoi(r.metric(`ferryman_log_lines_lost_total{log="main"}`))
	require.NoError(r.t, err)
	return n
}

// Case 285: the reader of standard error has stopped. Nothing else does.
func TestServe_GoesOnWhereNobodyReadsItsLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, engine := range []string{"loops", "goroutines"} {
			t.Run(format+" "+engine, func(t *testing.T) {
				t.Parallel()
				a, waiting, _ := backend(t, "A")
				r, stderr := flood(t, a, "--log-format", format, "--engine", engine)
				for range 50 {
					status, body := get(t, "http://"+r.front+"/")
					require.Equal(t, "200 A", fmt.Sprint(status, " ", body))
				}
				status, _ := get(t, "http://"+r.metrics+"/healthz")
				require.Equal(t, 200, status)

				// Its reader is back: what was kept comes, and one line that tells of the rest.
				told, lost := make(chan string, 100), 0
				go func() {
					for lines := bufio.NewScanner(stderr); lines.Scan(); {
						if strings.Contains(lines.Text(), "log lines lost") {
							told <- lines.Text()
						}
					}
				}()
				poll(t, 10*time.Second, "told", func() bool {
					select {
					case line := <-told:
						n, err := strconv.Atoi(strings.Trim(line[strings.LastIndexAny(line, "=:")+1:], "}"))
						require.NoError(t, err, line)
						lost += n
					default:
					}
					return lost > 0 && lost == r.lost()
				})

				go fetch("GET", "http://"+r.front+"/wait")
				<-waiting
				began := time.Now()
				r.signal(syscall.SIGTERM)
				poll(t, 5*time.Second, "it drains", func() bool { s, _ := fetch("GET", "http://"+r.front+"/"); return s == 0 })
				r.signal(syscall.SIGTERM)
				require.Equal(t, 1, r.status(5*time.Second))
				require.Less(t, time.Since(began), 5*time.Second)
			})
		}
	}
}

// Case 285: signals are obeyed all the same.
func TestServe_EndsWhereNobodyReadsItsLog(t *testing.T) {
	for _, engine := range []string{"loops", "goroutines"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a, waiting, release := backend(t, "A")
			r, _ := flood(t, a, "--engine", engine)
			answer := make(chan string, 1)
			go func() { _, body := fetch("GET", "http://"+r.front+"/wait"); answer <- body }()
			<-waiting
			r.signal(syscall.SIGTERM)
			poll(t, 5*time.Second, "it drains", func() bool { s, _ := fetch("GET", "http://"+r.metrics+"/readyz"); return s == 503 })
			close(release)
			require.Equal(t, "A", <-answer)
			began := time.Now()
			require.Zero(t, r.status(10*time.Second))
			require.Less(t, time.Since(began), 3*time.Second, "the log has a second")

			b, waiting, _ := backend(t, "B")
			r, _ = flood(t, b, "--engine", engine)
			go fetch("GET", "http://"+r.front+"/wait")
			<-waiting
			r.signal(syscall.SIGTERM)
			poll(t, 5*time.Second, "it drains", func() bool { s, _ := fetch("GET", "http://"+r.metrics+"/readyz"); return s == 503 })
			began = time.Now()
			r.signal(os.Interrupt)
			require.Equal(t, 1, r.status(5*time.Second))
			require.Less(t, time.Since(began), time.Second)
		})
	}
}

// Case 285: an error at the start has a bounded time to be told, too.
func TestServe_ErrorThatNobodyReadsIsNoHang(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("unknown_key_of_a_long_name_"+strings.Repeat("x", 200)+" = 1\n", 1)+
		strings.Repeat("[[routes]]\nprefix = \"x\"\n", 100)), 0o644))
	p, _, _ := launchUnread(t, "--config", file)
	require.Equal(t, 1, p.status(5*time.Second))
}

// Case 285: the demo prints to standard output as well.
func TestDemo_GoesOnWhereNobodyReadsIt(t *testing.T) {
	t.Parallel()
	front, metrics := freeAddress(t), freeAddress(t)
	p, stdout, _ := launchUnread(t, "demo", "--bind", front, "--metrics-bind", metrics)
	r := &running{process: p, front: front, metrics: metrics}
	poll(t, 10*time.Second, "it serves", func() bool { status, _ := fetch("GET", "http://"+front+"/svc-a/"); return status == 200 })
	poll(t, 60*time.Second, "lines are lost", func() bool {
		_, err := io.WriteString(p.stdin, strings.Repeat("help\n", 1000))
		require.NoError(t, err)
		return r.lost() > 0
	})
	status, body := fetch("POST", "http://"+metrics+"/demo/stop/a")
	require.Equal(t, 200, status, body)
	status, _ = get(t, "http://"+front+"/svc-b/")
	require.Equal(t, 200, status)

	told := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if strings.Contains(lines.Text(), "lines are missing here") {
				told <- lines.Text()
				return // and it reads no further
			}
		}
	}()
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		require.Fail(t, "nobody is told")
	}
	before := r.lost()
	poll(t, 60*time.Second, "lines are lost again", func() bool {
		_, err := io.WriteString(p.stdin, strings.Repeat("help\n", 1000))
		require.NoError(t, err)
		return r.lost() > before
	})
	p.signal(os.Interrupt)
	require.Zero(t, p.status(5*time.Second))
}
