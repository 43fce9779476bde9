//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, func(string) string { return "" }, &out, &errs)
	return code, out.String(), errs.String()
}

func TestRun_ListsCommandsAndRefusesWhatItDoesNotKnow(t *testing.T) {
	code, out, _ := call(t)
	require.Zero(t, code)
	for _, c := range commands() {
		require.Contains(t, out, "lab "+c.name)
	}
	code, _, errs := call(t, "sink")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "lab: there is no command \"sink\"; `lab` alone lists them\n", errs)
	code, _, errs = call(t, "kill")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "usage: lab kill a|b|c\n", errs)
	code, _, errs = call(t, "doctor", "nobody")
	require.Equal(t, 1, code)
	require.Contains(t, errs, `"nobody" is neither demo nor up`)
}

func TestTable_FailuresComeFirstAndSetTheStatus(t *testing.T) {
	rows := func() []row {
		return []row{{"one", "1", "< 2", pass}, {"two", "-", "-", skipped}, {"three", "9", "< 2", fail}, {"four", "?", "-", invalid}}
	}
	var out bytes.Buffer
	l := &lab{stdout: &out}
	require.Equal(t, status(1), l.table(rows(), false))
	var order []string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 3 {
			order = append(order, f[1])
		}
	}
	require.Equal(t, []string{"WHAT", "three", "four", "two", "one", "passed,"}, order)
	require.Contains(t, out.String(), "1 passed, 1 failed, 1 invalid, 1 skipped")
	require.Equal(t, status(exitInvalid), l.table(rows()[3:], false))
	require.NoError(t, l.table(rows()[3:], true), "a smoke test only says what it could not measure")
	require.NoError(t, l.table(rows()[:2], false))
}

func TestUnfitness_BlamesTheMachineOnlyWhereTheDirectRunsDo(t *testing.T) {
	good := sample{p50: 100 * time.Microsecond, p99: time.Millisecond, p999: 2 * time.Millisecond}
	slow := sample{p50: 2 * time.Millisecond, p99: 9 * time.Millisecond, p999: 30 * time.Millisecond}
	require.Empty(t, unfitness(good, slow, good), "a slow proxy is no excuse")
	require.NotEmpty(t, unfitness(slow, good, good))
	require.NotEmpty(t, unfitness(good, good, slow))
	lagging := good
	lagging.invalid = []string{"send lag"}
	require.Equal(t, "send lag", unfitness(good, lagging, good))

	b := &bench{}
	b.judgeLatency(100, slow, good.p50)
	for i, want := range []verdict{fail, fail, fail, pass, pass} {
		require.Equal(t, want, b.rows[i].verdict, b.rows[i].what)
	}
}

func TestParseWrk2_ReadsItsTable(t *testing.T) {
	s, err := parseWrk2(`  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%  635.00us
 75.000%    0.91ms
 99.000%    1.52ms
 99.900%    4.10ms
 99.990%    8.83ms
100.000%    9.07ms
  Socket errors: connect 0, read 2, write 0, timeout 3
  Non-2xx or 3xx responses: 7
`)
	require.NoError(t, err)
	require.Equal(t, sample{p50: 635 * time.Microsecond, p99: 1520 * time.Microsecond, p999: 4100 * time.Microsecond, errors: 12}, s)
	_, err = parseWrk2("Requests/sec: 9\n")
	require.ErrorContains(t, err, "not wrk")
}

func TestChanges_SayWhatDiffersAndAtFirstWhatIsNotWell(t *testing.T) {
	seen := map[string]string{}
	require.Equal(t, []string{"circuit of echo-b: open"}, changes(seen, map[string]string{"circuit of echo-a": "closed", "circuit of echo-b": "open"}))
	require.Empty(t, changes(seen, map[string]string{"circuit of echo-a": "closed"}))
	require.Equal(t, []string{"circuit of echo-a: closed -> open"}, changes(seen, map[string]string{"circuit of echo-a": "open"}))
}

func TestPortName_IsTheVariableToChange(t *testing.T) {
	p, err := labenv.PortsFrom(func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, "LAB_GRAFANA_PORT", portName(p, 3000))
}
