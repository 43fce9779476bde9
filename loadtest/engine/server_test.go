package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
	"github.com/stretchr/testify/require"
)

// answer is what a scripted server does with a request, the n-th since it started, from 1. It
// reports whether the connection stays.
type answer func(c *net.TCPConn, n int64) (stays bool)

// scripted is a server that does what a test tells it.
type scripted struct {
	addr     string
	requests atomic.Int64
	conns    atomic.Int64
	bodies   atomic.Int64 // bytes of request bodies
}

func (s *scripted) url() string { return "http://" + s.addr + "/x" }

// serve starts a scripted server that ends with the test.
func serve(t testing.TB, do answer) *scripted {
	t.Helper()
	config := net.ListenConfig{}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &scripted{addr: l.Addr().String()}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				s.converse(c.(*net.TCPConn), do)
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return s
}

func (s *scripted) converse(c *net.TCPConn, do answer) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		n, err := io.Copy(io.Discard, request.Body)
		if err != nil {
			return
		}
		s.bodies.Add(n)
		if !do(c, s.requests.Add(1)) {
			return
		}
	}
}

// respond writes raw bytes as the whole answer and keeps the connection.
func respond(raw string) answer {
	return func(c *net.TCPConn, _ int64) bool {
		_, err := io.WriteString(c, raw)
		return err == nil
	}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// pauseFor lasts d; scripts are slow on purpose.
func pauseFor(d time.Duration) { <-time.After(d) }

// plan is a short run against url that a loaded machine can keep.
func plan(url string) Plan {
	return Plan{
		Targets: []Target{{Request: wire.Request{URL: url}}}, Rate: 400, Connections: 4, Loops: 2,
		Duration: 250 * time.Millisecond, Timeout: 2 * time.Second,
	}
}

// run runs p with the given executor.
func run(t testing.TB, p Plan) result.Report {
	t.Helper()
	report, err := Run(context.Background(), p)
	require.NoError(t, err)
	return report
}

// executors runs f for each executor that this system has.
func executors(t *testing.T, f func(t *testing.T, executor string)) {
	t.Helper()
	names := []string{Goroutines}
	if haveLoops {
		names = append(names, Loops)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// classes are the outcomes that occurred, in words.
func classes(o result.Outcome) string {
	var list []string
	for c := range result.Classes {
		if n := o.Classes[c.String()]; n > 0 {
			list = append(list, fmt.Sprintf("%s %d", c, n))
		}
	}
	return strings.Join(list, ", ")
}
