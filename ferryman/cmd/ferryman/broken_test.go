package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// steady asks for a URL over and over until the test ends; the function says whether all was served so far.
func steady(t *testing.T, url string) (served func()) {
	stop, failed := make(chan struct{}), make(chan string, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if status, body := fetch(http.MethodGet, url); status != 200 {
				failed <- fmt.Sprint(status, " ", body)
				return
			}
		}
	})
	t.Cleanup(func() { close(stop); asking.Wait() })
	return func() {
		t.Helper()
		select {
		case text := <-failed:
			require.Fail(t, "a request beside the changes failed", text)
		default:
		}
	}
}

// Conformance cases 234, 235 and 236, from the file to the client: whatever becomes of the file, the
// routes of the last good one serve on, and each trouble is one line and counts once.
func TestServe_BrokenFileLeavesTheRoutesAlone(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	b, _, _ := backend(t, "B")
	beside := route("/beside", a)
	r := runWith(t, beside+route("/", a))
	good := beside + route("/", a)
	served := steady(t, "http://"+r.front+"/beside")
	failures := func() int {
		n, err := strconv.Atoi(r.metric(`ferryman_config_reloads_total{result="failure"}`))
		require.NoError(t, err)
		return n
	}
	put := func(text string) { require.NoError(t, os.WriteFile(r.config, []byte(text), 0o644)) }
	remove := func() { require.NoError(t, os.RemoveAll(r.config)) }
	for i, step := range []struct {
		name string
		do   func()
	}{
		{"left empty", func() { require.NoError(t, os.Truncate(r.config, 0)) }},
		{"invalid TOML", func() { put("[[routes") }},
		{"unknown key", func() { put("nonsense = 1\n" + good) }},
		{"duplicate route", func() { put(good + route("/", b)) }},
		{"bad URL", func() { put("[[routes]]\nprefix = \"/\"\nupstream = \"ftp://a\"\n") }},
		{"bad duration", func() { put("upstream_timeout_secs = \"1s\"\n" + good) }},
		{"port out of range", func() { put(route("/", "a:65536")) }},
		{"NUL bytes", func() { put(good + "\x00") }},
		{"gone", remove},
		{"directory", func() { require.NoError(t, os.Mkdir(r.config, 0o755)) }},
		{"symlink loop", func() { remove(); require.NoError(t, os.Symlink("config.toml", r.config)) }},
		{"1 GiB", func() { remove(); put(""); require.NoError(t, os.Truncate(r.config, 1<<30)) }},
	} {
		step.do()
		poll(t, 10*time.Second, step.name, func() bool { return failures() > i })
		require.Equal(t, i+1, failures(), step.name)
		require.Equal(t, i+1, strings.Count(r.output(), "configuration rejected"), step.name)
		_, body := get(t, "http://"+r.front+"/")
		require.Equal(t, "A", body, step.name)
	}
	// Recovered by a file with the line ends of another system, emptied and written a moment later.
	text := strings.ReplaceAll(beside+route("/", b), "\n", "\r\n")
	require.NoError(t, os.Truncate(r.config, 0))
	<-time.After(100 * time.Millisecond)
	put(text)
	poll(t, 10*time.Second, "recovered", func() bool { _, body := get(t, "http://"+r.front+"/"); return body == "B" })
	served()
}
