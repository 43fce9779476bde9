package load_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/benches/compare/load"
)

// TestMain makes this test's executable a generator too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == load.Command {
		if err := load.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func start(t *testing.T) *load.Generator {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	g, err := load.Start(self, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(g.Stop)
	return g
}

func serve(t *testing.T, body string) (url string, served *atomic.Int64) {
	t.Helper()
	served = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/x", served
}

func job(url string) load.Job {
	return load.Job{
		URL: url, Method: "GET", Want: []byte("right"), Rate: 200, Connections: 4,
		Warmup: 100 * time.Millisecond, Duration: 400 * time.Millisecond,
	}
}

func TestGenerator_RunsJobAfterJobAndTellsWhenEachIsMeasured(t *testing.T) {
	url, served := serve(t, "right")
	g := start(t)
	for range 2 {
		var moments []string
		o, err := g.Run(t.Context(), job(url), load.Hooks{
			Begun: func() { moments = append(moments, "begun") },
			Ended: func() { moments = append(moments, "ended") },
		})
		require.NoError(t, err)
		require.Equal(t, []string{"begun", "ended"}, moments)
		require.EqualValues(t, 80, o.Requests)
		require.EqualValues(t, 80, o.Right)
		require.Empty(t, o.Wrong)
		require.InDelta(t, 200, o.RightRate, 1)
		require.NotNil(t, o.Latency)
		require.Positive(t, o.Latency.P50)
	}
	require.EqualValues(t, 200, served.Load()) // with the warm-ups
}

func TestGenerator_AClosedLoopHasNoLatency(t *testing.T) {
	url, _ := serve(t, "right")
	j := job(url)
	j.Rate, j.Method, j.Body = 0, "POST", []byte("a=b")
	o, err := start(t).Run(t.Context(), j, load.Hooks{})
	require.NoError(t, err)
	require.Nil(t, o.Latency)
	require.Positive(t, o.RightRate)
}

func TestGenerator_CountsWrongAnswersByKind(t *testing.T) {
	url, _ := serve(t, "wrong")
	o, err := start(t).Run(t.Context(), job(url), load.Hooks{})
	require.NoError(t, err)
	require.Zero(t, o.Right)
	require.Equal(t, map[string]int64{"wrong_body": 80}, o.Wrong)
}

func TestGenerator_CutEndsAJobBeforeItsTime(t *testing.T) {
	url, _ := serve(t, "right")
	g := start(t)
	j := job(url)
	j.Duration = time.Hour
	began := time.Now()
	o, err := g.Run(t.Context(), j, load.Hooks{Begun: func() { require.NoError(t, g.Cut()) }})
	require.NoError(t, err)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Less(t, o.Seconds, 30.0)
	_, err = g.Run(t.Context(), job(url), load.Hooks{}) // the next one is not cut
	require.NoError(t, err)
}

func TestGenerator_AJobThatCannotRunIsAnErrorAndNotTheEnd(t *testing.T) {
	url, _ := serve(t, "right")
	g := start(t)
	_, err := g.Run(t.Context(), job("http://127.0.0.1:1/"), load.Hooks{})
	require.Error(t, err)
	unwarmed := job(url)
	unwarmed.Warmup = 0
	_, err = g.Run(t.Context(), unwarmed, load.Hooks{})
	require.ErrorContains(t, err, "warm-up")
	_, err = g.Run(t.Context(), job(url), load.Hooks{})
	require.NoError(t, err)
}

func TestServe_RefusesWhatIsNoMessage(t *testing.T) {
	in, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "not json\n")
		w.Close()
	}()
	require.ErrorContains(t, load.Serve(t.Context(), in, io.Discard), "read a message")
}
