package ferryman

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

func named(name string) script {
	return answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + name)
}

func TestReload_KeptAliveClientSeesTheNewRouteWithItsNextRequest(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		a, b := startUpstream(t, named("a")), startUpstream(t, named("b"))
		p, addr := startProxy(t, engine, testConfig(map[string]string{"/": a}))
		c := dial(t, addr)
		_, body := c.get("/")
		require.Equal(t, "a", body)
		require.NoError(t, p.Reload(testConfig(map[string]string{"/": b})))
		_, body = c.get("/")
		require.Equal(t, "b", body)
	})
}

func TestReload_UnchangedUpstreamKeepsPoolBreakerAndChecker(t *testing.T) {
	a, b := startUpstream(t, named("a")), startUpstream(t, named("b"))
	p, addr := startProxy(t, "goroutines", testConfig(map[string]string{"/": a, "/b": b}))
	dial(t, addr).get("/")
	before := p.snapshot.Load()
	require.NoError(t, p.Reload(testConfig(map[string]string{"/x": a})))
	after := p.snapshot.Load()
	require.Same(t, before.upstreams[a].Upstream, after.upstreams[a].Upstream)
	require.Same(t, before.upstreams[a].checker, after.upstreams[a].checker)
	require.Eventually(t, func() bool { // the answer is there before the connection is back
		_, idle := after.upstreams[a].Connections()
		return idle == 1
	}, patience, time.Millisecond)
	require.NotContains(t, after.upstreams, b)
}

func TestReload_RemovedUpstreamLosesConnectionsAndSeries(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		gone := make(chan struct{})
		a := startUpstream(t, func(c net.Conn, in *bufio.Reader) {
			named("a")(c, in)
			close(gone)
		})
		b := startUpstream(t, named("b"))
		p, addr := startProxy(t, engine, testConfig(map[string]string{"/": a}))
		c := dial(t, addr)
		c.get("/")
		require.Contains(t, metricsOf(t, p), a)
		require.NoError(t, p.Reload(testConfig(map[string]string{"/": b})))
		<-gone // the pooled connection was closed
		require.NotContains(t, metricsOf(t, p), a)
		_, body := c.get("/")
		require.Equal(t, "b", body)
	})
}

func TestReload_InFlightRequestEndsOnTheOldUpstream(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		asked, release := make(chan struct{}), make(chan struct{})
		a := startUpstream(t, func(c net.Conn, in *bufio.Reader) {
			http.ReadRequest(in)
			close(asked)
			<-release
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
		})
		p, addr := startProxy(t, engine, testConfig(map[string]string{"/": a}))
		c := dial(t, addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-asked
		require.NoError(t, p.Reload(testConfig(map[string]string{"/": startUpstream(t, named("b"))})))
		close(release)
		_, body := c.answer()
		require.Equal(t, "a", body)
		_, body = c.get("/")
		require.Equal(t, "b", body)
	})
}

func TestReload_InvalidConfigurationChangesNothingAndIsCounted(t *testing.T) {
	a := startUpstream(t, named("a"))
	p, addr := startProxy(t, "goroutines", testConfig(map[string]string{"/": a}))
	bad := testConfig(map[string]string{"/": a})
	bad.FailureThreshold = 0
	require.Error(t, p.Reload(bad))
	p.ReloadFailed(errors.New("config.toml: line 3"))
	_, body := dial(t, addr).get("/")
	require.Equal(t, "a", body)
	require.Contains(t, metricsOf(t, p), `ferryman_config_reloads_total{result="failure"} 2`)
}

func TestReload_StripPrefix(t *testing.T) {
	seen := make(chan string, 1)
	up := startUpstream(t, func(c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			seen <- r.RequestURI
			io.WriteString(c, hello)
		}
	})
	c := testConfig(nil)
	c.Routes = []config.Route{{Prefix: "/strip/", Upstream: up, StripPrefix: true}}
	_, addr := startProxy(t, "goroutines", c)
	client := dial(t, addr)
	for path, want := range map[string]string{
		"/strip": "/", "/strip/": "/", "/strip?q": "/?q", "/strip/b%2Fc": "/b%2Fc", "/strip/x?/strip": "/x?/strip",
	} {
		client.get(path)
		require.Equal(t, want, <-seen, path)
	}
}

func TestMetrics_LabelsComeFromTheConfigurationOnly(t *testing.T) {
	p, addr := startProxy(t, "goroutines", testConfig(map[string]string{"/": startUpstream(t, answering(hello))}))
	c := dial(t, addr)
	c.get("/first")
	series := strings.Count(metricsOf(t, p), "\n")
	for _, path := range []string{"/a", "/b", "/c?d"} {
		c.get(path)
	}
	page := metricsOf(t, p)
	require.Equal(t, series, strings.Count(page, "\n"))
	require.NotContains(t, page, "/first")
}
