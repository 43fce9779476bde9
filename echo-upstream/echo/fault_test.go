package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFault_LatencyDelaysAndHealingEndsTheWait(t *testing.T) {
	l := start(t)
	l.put(`{"latency":"40ms"}`)
	begin := time.Now()
	l.dial().get("/echo").answer("GET")
	require.GreaterOrEqual(t, time.Since(begin), 40*time.Millisecond)

	l.put(`{"latency":"1m","error_rate":1}`)
	c := l.dial().get("/echo")
	l.until("the request waits", func() bool { return l.faults[kindLatency].Load() == 2 })
	status, _ := l.ask(http.MethodDelete, "/fault", "")
	require.Equal(t, 200, status)
	r, _ := c.answer("GET")
	require.Equal(t, 200, r.StatusCode, "the rest of the fault is over too")
}

func TestFault_ErrorRateIsSpreadEvenly(t *testing.T) {
	l := start(t)
	l.put(`{"error_rate":0.25,"error_status":502}`)
	c := l.dial()
	var got []int
	for range 8 {
		r, _ := c.get("/echo").answer("GET")
		got = append(got, r.StatusCode)
	}
	require.Equal(t, []int{200, 200, 200, 502, 200, 200, 200, 502}, got)
}

func TestFault_ErrorDefaultsTo503AndDrainsTheBody(t *testing.T) {
	l := start(t)
	l.put(`{"error_rate":1}`)
	c := l.dial().send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
	r, _ := c.answer("POST")
	require.Equal(t, 503, r.StatusCode)
	r, _ = c.get("/echo").answer("GET")
	require.Equal(t, 503, r.StatusCode)
}

func TestFault_ResetSendsRST(t *testing.T) {
	l := start(t)
	l.put(`{"reset":true}`)
	_, err := l.dial().get("/echo").Read(make([]byte, 1))
	require.True(t, errors.Is(err, syscall.ECONNRESET), "got %v", err)
	l.until("nothing is left open", func() bool { return l.openNow.Load() == 0 })
}

func TestFault_HangHoldsWithoutAByteAndHealingCloses(t *testing.T) {
	l := start(t)
	l.put(`{"hang":true}`)
	c := l.dial().get("/echo")
	l.until("the connection is held", func() bool { return l.held.Load() == 1 })
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")

	status, _ := l.ask(http.MethodDelete, "/fault", "")
	require.Equal(t, 200, status, "the admin port answers while the data port hangs")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	r, _ := l.dial().get("/echo").answer("GET")
	require.Equal(t, 200, r.StatusCode)
}

func TestFault_HangLetsGoOfAClientThatLeaves(t *testing.T) {
	l := start(t)
	l.put(`{"hang":true}`)
	c := l.dial().get("/echo")
	l.until("the connection is held", func() bool { return l.held.Load() == 1 })
	require.NoError(t, c.Close())
	l.until("it is let go", func() bool { return l.held.Load() == 0 && l.openNow.Load() == 0 })
}

func TestFault_SlowBodySendsTheHeadAtOnceAndKeepsTheConnection(t *testing.T) {
	l := start(t)
	l.put(`{"slow_body":"100ms"}`)
	c := l.dial()
	for _, target := range []string{"/echo", "/bytes/100000", "/chunked/100"} {
		begin := time.Now()
		c.get(target)
		_, err := c.r.Peek(1)
		require.NoError(t, err)
		head := time.Since(begin)
		c.answer("GET")
		total := time.Since(begin)
		require.Greater(t, total-head, 30*time.Millisecond, "%s: the body takes its time", target)
	}
	l.ask(http.MethodDelete, "/fault", "")
	_, body := c.get("/echo").answer("GET")
	require.Equal(t, string(echoBody), body)
}

func TestFault_HealthFollowsUnlessOverridden(t *testing.T) {
	l := start(t)
	for _, tc := range []struct {
		fault string
		want  int
	}{
		{`{"error_rate":1}`, 503}, {`{"error_rate":1,"health":"follow"}`, 503}, {`{"error_rate":1,"health":"ok"}`, 200},
		{`{"health":"fail"}`, 503}, {`{"health":"ok","hang":true}`, 200}, {`{}`, 200},
	} {
		l.put(tc.fault)
		r, _ := l.dial().get("/health").answer("GET")
		require.Equal(t, tc.want, r.StatusCode, tc.fault)
	}
}

func TestFault_BadInputIsA400WithAReasonAndChangesNothing(t *testing.T) {
	l := start(t)
	status, before := l.put(`{"latency":"7s","health":"ok"}`)
	require.Equal(t, 200, status)
	for _, tc := range []struct{ body, want string }{
		{``, "empty"}, {`{`, "not a fault"}, {`[]`, "not a fault"}, {`{"latenzy":"1s"}`, "latenzy"}, {`{"latency":5}`, "250ms"},
		{`{"latency":"fast"}`, `"fast"`}, {`{"latency":"-1s"}`, "latency"}, {`{"slow_body":"11m"}`, "slow_body"},
		{`{"error_rate":1.5}`, "between 0 and 1"}, {`{"error_status":200}`, "400"}, {`{"hang":true,"reset":true}`, "exclude"},
		{`{"health":"sick"}`, "follow, ok or fail"}, {`{} {}`, "follows"}, {strings.Repeat(" ", 20<<10), "too large"},
	} {
		status, body := l.put(tc.body)
		require.Equal(t, 400, status, tc.body)
		require.Contains(t, body, tc.want)
		require.Equal(t, 1, strings.Count(body, "\n"), "one line: %q", body)
		_, after := l.ask(http.MethodGet, "/fault", "")
		require.Equal(t, before, after, tc.body)
	}
	status, _ = l.ask(http.MethodPost, "/fault", "{}")
	require.Equal(t, http.StatusMethodNotAllowed, status)
}

func TestMetrics_ShowAnswersFaultsAndConnections(t *testing.T) {
	l := start(t)
	c := l.dial()
	c.get("/echo").answer("GET")
	c.get("/status/404").answer("GET")
	l.put(`{"latency":"1ms","jitter":"1ms","health":"fail"}`)
	c.get("/echo").answer("GET")
	_, page := l.ask(http.MethodGet, "/metrics", "")
	for _, line := range []string{
		`echo_info{instance_name="echo-t"} 1`,
		`echo_requests_total{endpoint="echo",status="200"} 2`,
		`echo_requests_total{endpoint="status",status="404"} 1`,
		`echo_requests_total{endpoint="stream",status="200"} 0`,
		`echo_faults_total{kind="latency"} 1`, `echo_faults_total{kind="reset"} 0`,
		`echo_fault{kind="latency"} 0.001`, `echo_fault{kind="health_fail"} 1`, `echo_fault{kind="hang"} 0`,
		`echo_fault_changes_total 1`, `echo_connections 1`, `echo_connections_opened_total 1`, `echo_held_connections 0`,
	} {
		require.Contains(t, page, "\n"+line+"\n")
	}
	for line := range strings.Lines(page) {
		require.True(t, strings.HasPrefix(line, "echo_") || strings.HasPrefix(line, "# HELP echo_") || strings.HasPrefix(line, "# TYPE echo_"), line)
	}
	status, _ := l.ask(http.MethodGet, "/healthz", "")
	require.Equal(t, 200, status)
}

func TestShutdown_ReleasesWhatAFaultHoldsAndAnswersWhatIsInFlight(t *testing.T) {
	l := start(t)
	l.put(`{"hang":true}`)
	held := l.dial().get("/echo")
	l.until("the connection is held", func() bool { return l.held.Load() == 1 })
	l.put(`{"latency":"1m"}`)
	waiting := l.dial().get("/echo")
	l.until("the request waits", func() bool { return l.faults[kindLatency].Load() == 1 })

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, l.Shutdown(ctx))
	r, _ := waiting.answer("GET")
	require.Equal(t, 200, r.StatusCode)
	require.True(t, r.Close, "the last answer says that the connection ends")
	_, err := held.Read(make([]byte, 1))
	require.Error(t, err)
}

// until polls for a condition, with a deadline.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	require.Eventually(l.t, ok, 10*time.Second, time.Millisecond, fmt.Sprintf("in vain: %s", what))
}
