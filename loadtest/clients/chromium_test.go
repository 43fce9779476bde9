//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reports is the upstream that pages post to.
func reports(t *testing.T) (addr string, got <-chan []byte) {
	t.Helper()
	posted := make(chan []byte, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.Method == http.MethodPost {
			select {
			case posted <- body:
			default: // the page was loaded again
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), posted
}

// browse opens a page in a browser of its own, which knows no other host, and decodes the page's report.
func browse(t *testing.T, url string, got <-chan []byte, report any, more ...string) {
	t.Helper()
	browser := launch(t, program(t, "chromium"), append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--ignore-certificate-errors", "--user-data-dir=" + t.TempDir(), url}, more...)...)
	select {
	case body := <-got:
		t.Logf("the page reports %s", body)
		require.NoError(t, json.Unmarshal(body, report), "%s", body)
	case <-browser.exited:
		require.Fail(t, "the browser has ended")
	case <-time.After(30 * time.Second):
		require.Fail(t, "the page reports nothing")
	}
	browser.kill(t)
}

// Five times the page is left while all of its images are on their way. The server behind computes meanwhile, as
// applications do, and its queue of connections has 128 places.
func TestChromium_APageLeftAndOpenedAgainIsComplete(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			u := uvicorn(t, "--backlog", "128")
			addr, got := reports(t)
			f := start(t, engine, true, route("/", u.addr), route("/report", addr))
			circuitsClosed(t, f, u)
			seen := filepath.Join(t.TempDir(), "net.json")
			var report struct{ Visit, Shown int }
			browse(t, f.url+"/images.html?visit=1", got, &report, "--log-net-log="+seen)
			text, err := os.ReadFile(seen)
			require.NoError(t, err)
			require.Contains(t, string(text), `"HTTP2_SESSION"`, "the browser's own log")
			assert.Empty(t, goaway.FindAllString(string(text), -1), "a client that has waited before it cancels is not sent away")
			assert.Zero(t, f.opened(t, u.addr), "no circuit has opened")
			assert.Equal(t, 6, report.Visit)
			assert.Equal(t, 300, report.Shown)
		})
	}
}

// goaway is how Chromium's log tells of one.
var goaway = regexp.MustCompile(`"error_code":"[^"]*","last_accepted_stream_id":\d+`)

// browsed runs body for both engines, over HTTP/1.1 and over HTTP/2 with TLS.
func browsed(t *testing.T, body func(t *testing.T, engine string, tls bool)) {
	t.Helper()
	for _, engine := range engines {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tls=%t", engine, tls), func(t *testing.T) {
				t.Parallel()
				body(t, engine, tls)
			})
		}
	}
}

func TestChromium_EventsAndWebSocketsAreLive(t *testing.T) {
	t.Parallel()
	needsWebSockets(t)
	u := uvicorn(t)
	browsed(t, func(t *testing.T, engine string, tls bool) {
		addr, got := reports(t)
		f := start(t, engine, tls, route("/", u.addr), route("/ws", u.addr, "upgrade = true"), route("/report", addr))
		var report struct {
			Error  string
			Events struct {
				IDs  []int
				Late float64
			}
			Sockets struct {
				Text []string
				Same bool
			}
		}
		browse(t, f.url+"/live.html", got, &report)
		require.Empty(t, report.Error)
		require.Len(t, report.Events.IDs, 15)
		require.True(t, slices.IsSorted(report.Events.IDs))
		require.Less(t, report.Events.Late, 1000.0, "milliseconds until the last event was seen")
		for i, text := range report.Sockets.Text {
			require.Equal(t, fmt.Sprintf("message %d: äöü", i), text)
		}
		require.Len(t, report.Sockets.Text, 20)
		require.True(t, report.Sockets.Same, "a megabyte there and back")
	})
}

func TestChromium_AnAbortedUploadIsCutAndNothingElse(t *testing.T) {
	t.Parallel()
	u, n := uvicorn(t), nginx(t)
	browsed(t, func(t *testing.T, engine string, tls bool) {
		addr, got := reports(t)
		f := start(t, engine, tls, route("/app", u.addr), stripped("/nginx", n.addr), route("/report", addr))
		var report struct {
			Error, Upload, End string
			Part               bool
			Beside             int
			After              []int
			Refused            []any
		}
		browse(t, f.url+"/app/uploads.html", got, &report)
		require.Empty(t, report.Error)
		require.Equal(t, "AbortError", report.Upload)
		require.Equal(t, "cut", report.End, "what the upstream saw of it")
		require.True(t, report.Part, "it was aborted before its end")
		require.Equal(t, 200, report.Beside, "what was on its way on the same connection")
		require.Len(t, report.After, 20)
		for i, length := range report.After {
			require.Equal(t, i*1000, length)
		}
		require.Equal(t, []any{403.0, 413.0, 404.0}, report.Refused)
		require.Zero(t, f.opened(t, u.addr), "a client's abort is no failure of the upstream")
	})
}
