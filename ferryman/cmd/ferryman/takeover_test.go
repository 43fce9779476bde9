package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 326: SIGTERM and the same command again, while the first one still has an event stream to serve.
func TestServe_NextOneServesWhileTheFirstDrains(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	events := make(chan string)
	streams := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		for {
			http.NewResponseController(w).Flush()
			select {
			case event, open := <-events:
				if !open {
					return
				}
				io.WriteString(w, "data: "+event+"\n\n")
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer streams.Close()
	first := runWith(t, route("/", a)+route("/events", streams.Listener.Addr().String()))
	stream, err := (&http.Transport{}).RoundTrip(httptest.NewRequest("GET", "http://"+first.front+"/events", nil))
	require.NoError(t, err)
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() string { lines.Scan(); text := lines.Text(); lines.Scan(); return text }
	events <- "1"
	require.Equal(t, "data: 1", next())

	first.signal(syscall.SIGTERM) // and at once:
	began := time.Now()
	second := launch(t, "--config", first.config, "--bind", first.front, "--metrics-bind", first.metrics)
	second.find("listening")
	_, body := get(t, "http://"+first.front+"/")
	require.Equal(t, "A", body)
	require.Less(t, time.Since(began), 5*time.Second)
	second.find("the metrics address follows")
	status, _ := get(t, "http://"+first.metrics+"/readyz")
	require.Equal(t, 503, status, "it is the first one that answers")
	events <- "2"
	require.Equal(t, "data: 2", next(), "the stream goes on")
	close(events)
	require.False(t, lines.Scan())
	require.Zero(t, first.status(5*time.Second))
	poll(t, 5*time.Second, "the metrics address is taken over", func() bool { status, _ := fetch("GET", "http://"+first.metrics+"/readyz"); return status == 200 })
	second.find("metrics address taken over")
	second.signal(syscall.SIGTERM)
	require.Zero(t, second.status(5*time.Second))
}

// Case 326: it is told to end before it has the metrics address.
func TestServe_NextOneEndsWithoutTheMetricsAddress(t *testing.T) {
	t.Parallel()
	a, waiting, release := backend(t, "A")
	first := runWith(t, route("/", a))
	go fetch("GET", "http://"+first.front+"/wait")
	<-waiting
	first.signal(syscall.SIGTERM)
	first.find("draining")
	second := launch(t, "--config", first.config, "--bind", first.front, "--metrics-bind", first.metrics)
	second.find("listening")
	second.signal(syscall.SIGTERM)
	require.Zero(t, second.status(5*time.Second))
	close(release)
	require.Zero(t, first.status(5*time.Second))
}

// Case 326: a ferryman that is not about to end keeps its addresses, and so does anything else.
func TestServe_SecondOneBesideTheFirstIsAnError(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	first := runWith(t, route("/", a))
	for _, addrs := range [][2]string{{first.front, first.metrics}, {"127.0.0.1:0", first.metrics}, {first.front, "127.0.0.1:0"}} {
		second := launch(t, "--config", first.config, "--bind", addrs[0], "--metrics-bind", addrs[1])
		require.Equal(t, 1, second.status(10*time.Second))
		require.Contains(t, second.output(), "address already in use: stop the other program or pass --")
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }))
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(route("/", a)), 0o644))
	other := launch(t, "--config", file, "--bind", "127.0.0.1:0", "--metrics-bind", busy.Listener.Addr().String())
	require.Equal(t, 1, other.status(10*time.Second))
	require.Contains(t, other.output(), "pass --metrics-bind")
}
