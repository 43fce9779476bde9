package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/stretchr/testify/require"
)

// target answers "ok", and what the path asks for.
func target(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/500":
			w.WriteHeader(500)
		case "/body":
			_, _ = w.Write(body)
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// call runs the program. Its machine may be busy: the limits of the generator are wide.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"--max-lag", "1m", "--max-steal", "100%"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestRun_ExitsAsTheVerdictSays(t *testing.T) {
	url := target(t)
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"pass", []string{"-c4", "-t1", "-R200", "-d0.2", url + "/"}, 0, "Verdict: PASS"},
		{"fail", []string{"-c", "4", "-R", "200", "-d", "200ms", url + "/500"}, 1, "errors is 40, the budget is 0"},
		{"errors allowed", []string{"-c4", "-R200", "-d0.2", "--max-errors", "any", url + "/500"}, 0, "status 40"},
		{"latency", []string{"-c4", "-R200", "-d0.2", "--max-p99", "1ns", url + "/"}, 1, "response p99"},
		{"expected body", []string{"-c4", "-R200", "-d0.2", "--expect-body", "ok", url + "/"}, 0, "ok 40"},
		{"other body", []string{"-c4", "-R200", "-d0.2", "--expect-body", "no", url + "/"}, 1, "wrong body 40"},
		{"expected status", []string{"-c4", "-R200", "-d0.2", "--expect-status", "500", url + "/500"}, 0, "ok 40"},
		{"post", []string{"-c4", "-R200", "-d0.2", "--body", "hello", "--expect-body", "hello", url + "/body"}, 0, "ok 40"},
		{"closed", []string{"-c4", "-d0.2", "--closed", url + "/"}, 0, "CAPACITY ONLY"},
		{"several", []string{"-c4", "-R200", "-d0.2", "--max-errors", "any", url + "/", url + "/500"}, 0, "Target " + url + "/500\n    ok 0, status 20"},
		{"h2c", []string{"-c2", "-R200", "-d0.2", "--h2", "--streams", "2", url + "/"}, 0, "2 connections on 4 goroutines, 200 requests/s, pinned, h2"},
		{"pool", []string{"-c4", "-R200", "-d0.2", "--mode", "pool", "--no-keepalive", url + "/"}, 0, "200 requests/s, pool, http/1.1, a connection per request"},
		{"late generator", []string{"-c4", "-R200", "-d0.2", "--max-lag", "1ns", url + "/"}, 3, "INVALID"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := call(t, tc.args...)
			require.Contains(t, stdout+stderr, tc.want)
			require.Equal(t, tc.code, code, stdout+stderr)
		})
	}
}

func TestRun_UsageErrorsAreOneLineThatSaysWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{}, "no URL"}, {[]string{"http://127.0.0.1/"}, "no rate: pass -R"}, {[]string{"-s", "x.lua", "http://127.0.0.1/"}, "--method, --header and --body"},
		{[]string{"-R", "0", "http://127.0.0.1/"}, "a number over 0"}, {[]string{"-R", "x", "http://127.0.0.1/"}, "a number over 0"},
		{[]string{"-R1", "-d", "soon", "http://127.0.0.1/"}, "a duration"}, {[]string{"-R1", "--mode", "both", "http://127.0.0.1/"}, "pinned or pool"},
		{[]string{"-R1", "--max-errors", "few", "http://127.0.0.1/"}, "a percentage"}, {[]string{"-R1", "--max-steal", "0", "http://127.0.0.1/"}, "a percentage"},
		{[]string{"--closed", "--max-p99", "1ms", "http://127.0.0.1/"}, "--closed says nothing about latency"},
		{[]string{"--closed", "-R1", "http://127.0.0.1/"}, "one of the two"},
		{[]string{"-R1", "--json", "-", "--svg", "-", "http://127.0.0.1/"}, "only one output"}, {[]string{"-R1", "--json", "", "http://127.0.0.1/"}, "file name"},
		{[]string{"-R1", "--json", "/nowhere/at/all", "http://127.0.0.1/"}, "--json"}, {[]string{"-R1", "--body", "@/nowhere", "http://127.0.0.1/"}, "--body"},
		{[]string{"-R1", "--expect-body", "@/nowhere", "http://127.0.0.1/"}, "--expect-body"},
		{[]string{"-R1", "http://192.0.2.7/"}, "--allow-remote"}, {[]string{"-R1", "--frobnicate", "http://127.0.0.1/"}, "frobnicate"},
		{[]string{"-R1", "--control", "127.0.0.1:-1", "http://127.0.0.1/"}, "--control"},
	} {
		code, stdout, stderr := call(t, tc.args...)
		require.Equal(t, exitUsage, code, "%v", tc.args)
		require.Contains(t, stderr, tc.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "%q", stderr)
		require.Empty(t, stdout)
	}
}

func TestRun_HelpFitsOneScreen(t *testing.T) {
	code, stdout, _ := call(t, "-h")
	require.Zero(t, code)
	require.Less(t, strings.Count(stdout, "\n"), 40)
	for line := range strings.Lines(stdout) {
		require.LessOrEqual(t, len(line), 81, line)
	}
	for _, name := range []string{"--latency", "--timeout", "--json", "--hgrm", "--svg", "--html", "--max-p999", "--min-rate", "--control", "--metrics-bind", "--allow-remote"} {
		require.Contains(t, stdout, name)
	}
}

func TestRun_NumbersAsWrk2WritesThem(t *testing.T) {
	o, err := parse([]string{"-t2", "-c100", "-d30", "-R2.5k", "--timeout", "3", "-H", "A: b", "-H", "C: d", "http://127.0.0.1/", "-L", "http://127.0.0.1/2"})
	require.NoError(t, err)
	require.Len(t, o.plan.Targets, 2)
	require.Equal(t, 2, o.plan.Loops)
	require.Equal(t, 100, o.plan.Connections)
	require.Equal(t, 30*time.Second, o.plan.Duration)
	require.Equal(t, 2500.0, o.plan.Rate)
	require.Equal(t, 3*time.Second, o.plan.Timeout)
	require.Equal(t, []string{"A: b", "C: d"}, o.plan.Targets[0].Headers)
	require.Equal(t, result.Detailed, o.spectrum)
}

func TestRun_WritesEveryOutput(t *testing.T) {
	dir, url := t.TempDir(), target(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	code, stdout, stderr := call(t, "-c2", "-R200", "-d0.2", "--json", "-", "--hgrm", path("r.hgrm"), "--svg", path("r.svg"), "--html", path("r.html"), url+"/")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "Verdict: PASS", "the text makes way")
	report := result.Report{}
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	require.EqualValues(t, 40, report.Total.Requests)
	require.Equal(t, result.Pass, report.Verdict.Outcome)
	for name, want := range map[string]string{"r.hgrm": "#[Mean", "r.svg": "<svg", "r.html": "<!doctype html>"} {
		b, err := os.ReadFile(path(name))
		require.NoError(t, err)
		require.Contains(t, string(b), want)
	}
}

// freeAddr is an address that nothing listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// ask sends a request and returns status and body; 0 while nothing answers.
func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestRun_ControlMarksTellsAndStops(t *testing.T) {
	control, metrics, url := freeAddr(t), freeAddr(t), target(t)
	type outcome struct {
		code           int
		stdout, stderr string
	}
	done := make(chan outcome, 1)
	go func() {
		var out, errs bytes.Buffer
		code := run(context.Background(), []string{"--max-lag", "1m", "--max-steal", "100%", "-c4", "-R500", "-d1h", "--control", control, "--metrics-bind", metrics, "--json", "-", url + "/"}, &out, &errs)
		done <- outcome{code, out.String(), errs.String()}
	}()
	require.Eventually(t, func() bool {
		_, body := ask(t, "GET", "http://"+control+"/status")
		var s status
		return json.Unmarshal([]byte(body), &s) == nil && s.Requests > 100 && s.Targets[0].Classes["ok"] == s.Requests && s.ElapsedS > 0
	}, 20*time.Second, 20*time.Millisecond)
	require.Zero(t, run(context.Background(), []string{"healthcheck", control}, io.Discard, io.Discard))

	code, body := ask(t, "POST", "http://"+control+"/mark/fault-1")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"name":"fault-1"`)
	code, _ = ask(t, "POST", "http://"+control+"/mark/%3Cscript%3E")
	require.Equal(t, 400, code)
	code, _ = ask(t, "GET", "http://"+control+"/mark/x")
	require.Equal(t, 405, code)

	_, page := ask(t, "GET", "http://"+metrics+"/metrics")
	for _, want := range []string{
		"loadtest_target_rate 500\n", `loadtest_requests_total{target="` + url + `/",class="ok"} `, `loadtest_requests_total{target="` + url + `/",class="timeout"} 0`,
		`loadtest_answers_total{target="` + url + `/",status="200"} `, `loadtest_response_seconds_bucket{target="` + url + `/",le="1.0"} `,
		`loadtest_service_seconds_count{target="`, `loadtest_send_lag_seconds_bucket{le="+Inf"} `, "loadtest_connections 4\n", "loadtest_dials_total 4\n",
	} {
		require.Contains(t, page, want)
	}

	code, _ = ask(t, "POST", "http://"+control+"/stop")
	require.Equal(t, 200, code)
	end := <-done
	require.Zero(t, end.code, end.stderr)
	report := result.Report{}
	require.NoError(t, json.Unmarshal([]byte(end.stdout), &report))
	require.True(t, report.Interrupted)
	require.Equal(t, "fault-1", report.Marks[0].Name)
	require.NotZero(t, run(context.Background(), []string{"healthcheck", control}, io.Discard, io.Discard))
	require.Equal(t, exitUsage, run(context.Background(), []string{"healthcheck"}, io.Discard, io.Discard))
}

func TestRun_AnInterruptStillPrintsTheReport(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"--max-lag", "1m", "--max-steal", "100%", "-c4", "-R500", "-d1h", target(t) + "/"}, &out, &errs)
	require.Zero(t, code, errs.String())
	require.Contains(t, out.String(), "stopped after")
	require.Contains(t, out.String(), "Verdict: PASS")
}

func TestRun_APortInUseSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	code, _, stderr := call(t, "-R1", "--metrics-bind", l.Addr().String(), target(t)+"/")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "is in use: stop the other program or pass another --metrics-bind")
}

func TestLiveLine_SaysHowItGoes(t *testing.T) {
	l := result.Live{Errors: 3, P99: 9 * time.Millisecond, Recent: result.Recent{Requests: 500, P50: time.Millisecond, P99: 2 * time.Millisecond}}
	require.Equal(t, "12s  500/s  p50 1ms  p99 2ms  errors 3  FAIL so far", liveLine(12*time.Second, l, result.Budgets{}))
	require.Contains(t, liveLine(12*time.Second, l, result.Budgets{P99: time.Second, Errors: result.ErrorBudget{Any: true}}), "PASS so far")
	require.Equal(t, "warming up, 2s left", liveLine(-2*time.Second, l, result.Budgets{}))
	require.Nil(t, liveWriter(options{}, &bytes.Buffer{}), "no live line into a file")
}

func TestQuoted_EscapesALabelsValue(t *testing.T) {
	require.Equal(t, `"a\\b\"c\nd"`, quoted("a\\b\"c\nd"))
}
