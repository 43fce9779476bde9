package ferryman

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// patience bounds every wait of a test. It is long, for a loaded machine is no fault.
const patience = 10 * time.Second

// engines are the two ways to carry HTTP/1.1; every body runs over both.
func engines() []string {
	if runtime.GOOS == "linux" {
		return []string{"goroutines", "loops"}
	}
	return []string{"goroutines"}
}

func forEachEngine(t *testing.T, body func(t *testing.T, engine string)) {
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) { body(t, engine) })
	}
}

// script answers one connection of an upstream.
type script func(c net.Conn, in *bufio.Reader)

// startUpstream runs a script for each connection and returns the address.
func startUpstream(t testing.TB, play script) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				play(c, bufio.NewReader(c))
			}()
		}
	}()
	return l.Addr().String()
}

// answering reads requests and gives each the same bytes; health checks get a 200.
func answering(answer string) script {
	return func(c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/health" {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			io.WriteString(c, answer)
		}
	}
}

// testConfig has one route a map entry and no health check that would come in between.
func testConfig(routes map[string]string) config.Config {
	c := config.Default()
	c.HealthInterval = time.Hour
	for prefix, upstream := range routes {
		c.Routes = append(c.Routes, config.Route{Prefix: prefix, Upstream: upstream})
	}
	return c
}

// startProxy serves a configuration on a loopback port.
func startProxy(t testing.TB, engine string, c config.Config) (p *Proxy, addr string) {
	t.Helper()
	return start(t, engine, c, (*Proxy).Serve)
}

// start is startProxy with a choice of how to serve.
func start(t testing.TB, engine string, c config.Config, serve func(*Proxy, net.Listener) error) (p *Proxy, addr string) {
	t.Helper()
	p, err := New(c, Options{Engine: engine})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- serve(p, l) }()
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, <-served)
	})
	return p, l.Addr().String()
}

// rawClient is a client that writes exact bytes.
type rawClient struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *rawClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return &rawClient{Conn: c, t: t, in: bufio.NewReader(c)}
}

// get sends a GET and returns status and body of the answer.
func (c *rawClient) get(path string) (status int, body string) {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
	return c.answer()
}

func (c *rawClient) send(bytes string) {
	c.t.Helper()
	_, err := io.WriteString(c, bytes)
	require.NoError(c.t, err)
}

func (c *rawClient) answer() (status int, body string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	require.NoError(c.t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(b)
}

// requireClosed insists that the connection ends without another byte.
func (c *rawClient) requireClosed() {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	require.NoError(c.t, err)
	require.Empty(c.t, string(rest))
}

// metricsOf reads the metrics page.
func metricsOf(t testing.TB, p *Proxy) string {
	t.Helper()
	w := newRecorder()
	r, err := http.NewRequestWithContext(context.Background(), "GET", "/metrics", nil)
	require.NoError(t, err)
	p.MetricsHandler().ServeHTTP(w, r)
	return w.body.String()
}

type recorder struct {
	header http.Header
	body   strings.Builder
	status int
}

func newRecorder() *recorder                    { return &recorder{header: http.Header{}, status: 200} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) WriteHeader(status int)      { r.status = status }
