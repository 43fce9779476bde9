package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// One lab, as starting it is what takes the time. Within a minute everything happens that the dashboard has
// a panel for.
func TestLab_NothingIsEmptyAndEveryNameExists(t *testing.T) {
	l := startLab(t)
	if l.prometheus != "" {
		l.untilScraped(t)
	}
	l.trouble(t)
	t.Run("names exist and are used", l.testNames)
	t.Run("no panel and no rule is empty", l.testNothingIsEmpty)
	t.Run("what is recorded is what rules say", l.testRecordings)
	t.Run("the lab's alerts fire", l.testAlerts)
}

func (l *lab) needsPrometheus(t *testing.T) {
	t.Helper()
	if l.prometheus == "" {
		t.Skip("no Prometheus here, so no expression was run: install it, or name its binary in PROMETHEUS_BIN")
	}
}

// trouble is one fault for each echo, a refused and a good configuration, and clients without patience.
func (l *lab) trouble(t *testing.T) {
	t.Helper()
	l.fault(t, 0, `{"error_rate":1,"health":"ok"}`) // flaps
	l.fault(t, 1, `{"hang":true}`)
	l.fault(t, 2, `{"latency":"300ms"}`)
	t.Cleanup(l.leaveEarly(t, "/svc-c/early"))
	l.reload(t, "routes = 7\n", "failure")
	l.reload(t, l.config()+"strip_prefix = true\n", "success")
	status, _ := ask(t.Context(), "GET", l.proxy+"/nowhere", "")
	require.Equal(t, 404, status)
	for _, series := range []string{ // one of each, before anything is counted
		`ferryman_requests_total{route="/svc-a",status="503"`, `ferryman_requests_total{route="/svc-b",status="504"`,
	} {
		l.until(t, func() bool { return l.line(t, series) != "" }, func() string { return "no " + series })
	}
}

func (l *lab) testNothingIsEmpty(t *testing.T) {
	l.needsPrometheus(t)
	all := append(readBoard(t).expressions(), allRules(t)...)
	var empty []expression
	l.until(t, func() bool {
		empty = nil
		for _, e := range all {
			if l.numbers(t, interpolated(e.expr)) == 0 {
				empty = append(empty, e)
			}
		}
		return len(empty) == 0
	}, func() string {
		var b strings.Builder
		for _, e := range empty {
			b.WriteString(e.where + " has no number: " + e.expr + "\n")
		}
		return b.String()
	})
	require.Zero(t, l.numbers(t, "sum(rate(ferryman_no_such_total[4s]))"), "a query for nothing must have no number")
}

// Prometheus itself has loaded the lab's rules and records them.
func (l *lab) testRecordings(t *testing.T) {
	l.needsPrometheus(t)
	for _, r := range readRules(t, "recording.yml") {
		l.until(t, func() bool { return l.numbers(t, r.Record) > 0 }, func() string { return r.Record + " is not recorded" })
	}
}

// All but FileDescriptorsLow, which would need as many connections as there are descriptors.
func (l *lab) testAlerts(t *testing.T) {
	l.needsPrometheus(t)
	l.untilFired(t, "UpstreamDown", "CircuitOpen", "CircuitFlapping", "HighErrorRatio", "LatencyBudgetBurn", "ConfigReloadFailed",
		"ClientAbortsHigh")
	l.fault(t, 0, `{"hang":true}`)
	l.fault(t, 2, `{"hang":true}`)
	l.untilFired(t, "AllUpstreamsDown")
	l.ferryman.kill()
	l.untilFired(t, "FerrymanDown")
}
