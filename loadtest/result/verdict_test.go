package result

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// good is a run that nothing is wrong with.
func good() Report {
	c := NewCollector(layout(), 1)
	for i := range 1000 {
		c.Recorder(0).Record(due(time.Duration(i)*ms, OK, ms))
	}
	r := c.Report(OpenLoop, time.Second)
	r.Connections = ConnectionCounts{Asked: 10, Established: 10}
	return r
}

func TestJudge_PassFailInvalid(t *testing.T) {
	tolerant := ErrorBudget{Any: true}
	for _, tc := range []struct {
		name    string
		change  func(*Report)
		budgets Budgets
		want    string
		code    int
		reason  string
	}{
		{name: "no budget, no error", want: Pass},
		{name: "kept", budgets: Budgets{P50: 2 * ms, P99: 2 * ms, P999: 2 * ms, MinRate: 1000}, want: Pass},
		{name: "p50", budgets: Budgets{P50: ms / 2}, want: Fail, code: 1, reason: "response p50 is 1ms, the budget is 500µs"},
		{name: "p99", budgets: Budgets{P99: ms / 2}, want: Fail, code: 1, reason: "response p99"},
		{name: "p99.9", budgets: Budgets{P999: ms / 2}, want: Fail, code: 1, reason: "response p99.9"},
		{name: "rate", budgets: Budgets{MinRate: 1001}, want: Fail, code: 1, reason: "rate of right answers is 1000.0/s"},
		{name: "an error", change: failOne, want: Fail, code: 1, reason: "errors is 1, the budget is 0"},
		{name: "an error within the count", change: failOne, budgets: Budgets{Errors: ErrorBudget{Count: 1}}, want: Pass},
		{name: "an error within the share", change: failOne, budgets: Budgets{Errors: ErrorBudget{Share: 0.001}}, want: Pass},
		{name: "an error beyond the share", change: failOne, budgets: Budgets{Errors: ErrorBudget{Share: 0.0005}}, want: Fail, code: 1, reason: "errors is 0.1%, the budget is 0.05%"},
		{name: "any error", change: failOne, budgets: Budgets{Errors: tolerant}, want: Pass},
		{name: "unsent", change: func(r *Report) { r.Total.Unsent = 11 }, budgets: Budgets{P99: ms / 2}, want: Invalid, code: 3, reason: "only 98.9% of the rate was sent"},
		{name: "almost all sent", change: func(r *Report) { r.Total.Unsent = 10 }, want: Pass},
		{name: "late", change: func(r *Report) { r.SendLag.P99US = 1001 }, want: Invalid, code: 3, reason: "send lag p99 is 1.001ms"},
		{name: "not late", change: func(r *Report) { r.SendLag.P99US = 1000 }, want: Pass},
		{name: "connections", change: func(r *Report) { r.Connections.Established = 9 }, want: Invalid, code: 3, reason: "only 9 of 10 connections"},
		{name: "stolen", change: func(r *Report) { r.Stolen = 0.021 }, want: Invalid, code: 3, reason: "2.1% of the processor time was stolen"},
		{name: "hardly stolen", change: func(r *Report) { r.Stolen = 0.02 }, want: Pass},
		{name: "nothing", change: func(r *Report) { r.Total = Outcome{}; r.Planned = 0 }, want: Invalid, code: 3, reason: "nothing was measured"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := good()
			if tc.change != nil {
				tc.change(&r)
			}
			r.Judge(tc.budgets, Limits{})
			require.Equal(t, tc.want, r.Verdict.Outcome, "%v", r.Verdict.Reasons)
			require.Equal(t, tc.code, r.Verdict.ExitCode())
			if tc.reason == "" {
				require.Empty(t, r.Verdict.Reasons)
			} else {
				require.Contains(t, r.Verdict.Reasons[0], tc.reason)
			}
		})
	}
}

func failOne(r *Report) { r.Total.Classes["ok"]-- }

func TestJudge_LimitsCanBeWidened(t *testing.T) {
	r := good()
	r.Stolen, r.SendLag.P99US = 0.5, 9000
	r.Judge(Budgets{}, Limits{Stolen: 0.6, LagP99: 10 * ms})
	require.Equal(t, Pass, r.Verdict.Outcome)
}

func TestParseErrorBudget_ReadsWhatItPrints(t *testing.T) {
	for text, want := range map[string]ErrorBudget{"0": {}, "7": {Count: 7}, "0.1%": {Share: 0.001}, "any": {Any: true}} {
		got, err := ParseErrorBudget(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "-1", "x", "101%", "-1%", "%", "1.5"} {
		_, err := ParseErrorBudget(text)
		require.ErrorContains(t, err, "write a number", text)
	}
}
