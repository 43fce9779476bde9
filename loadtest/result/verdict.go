package result

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Budgets are what a target must keep. Zero durations and rates are no budget.
type Budgets struct {
	P50, P99, P999 time.Duration // of response times, over all targets
	Errors         ErrorBudget
	MinRate        float64 // right answers per second
}

// ErrorBudget is how many requests may lack a right answer. The zero value allows none.
type ErrorBudget struct {
	Any   bool    // as many as there are
	Count int64   // this many
	Share float64 // or this share of all, 0 to 1, if that is more
}

// ParseErrorBudget reads "5", "0.1%" or "any".
func ParseErrorBudget(text string) (ErrorBudget, error) {
	if text == "any" {
		return ErrorBudget{Any: true}, nil
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		if v, err := strconv.ParseFloat(percent, 64); err == nil && v >= 0 && v <= 100 {
			return ErrorBudget{Share: v / 100}, nil
		}
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return ErrorBudget{Count: n}, nil
	}
	return ErrorBudget{}, fmt.Errorf("%q: write a number, a percentage such as 0.1%%, or any", text)
}

func (e ErrorBudget) String() string {
	switch {
	case e.Any:
		return "any"
	case e.Share > 0:
		return strconv.FormatFloat(e.Share*100, 'g', -1, 64) + "%"
	}
	return strconv.FormatInt(e.Count, 10)
}

// Limits are what the generator demands of itself and its machine. Zero fields mean the defaults.
type Limits struct {
	Achieved float64       // least share of the planned requests that was sent; default 0.99
	LagP99   time.Duration // default 1 ms
	Stolen   float64       // largest share of processor time that was stolen; default 0.02
}

func (l Limits) orDefaults() Limits {
	if l.Achieved <= 0 {
		l.Achieved = 0.99
	}
	if l.LagP99 <= 0 {
		l.LagP99 = time.Millisecond
	}
	if l.Stolen <= 0 {
		l.Stolen = 0.02
	}
	return l
}

// The outcomes of a verdict.
const (
	Pass    = "PASS"
	Fail    = "FAIL"
	Invalid = "INVALID" // the generator or its machine was at fault: nothing is known of the target
)

// Verdict is the outcome with the reasons for it; a pass needs none.
type Verdict struct {
	Outcome string   `json:"outcome"`
	Reasons []string `json:"reasons,omitempty"`
}

// ExitCode is 0, 1 for FAIL, 3 for INVALID.
func (v Verdict) ExitCode() int {
	switch v.Outcome {
	case Pass:
		return 0
	case Fail:
		return 1
	}
	return 3
}

// BudgetLine is a budget beside what was measured.
type BudgetLine struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Measured string `json:"measured"`
	Kept     bool   `json:"kept"`

	limit time.Duration // of a latency, for the charts
}

// Judge fills in Budgets and Verdict.
func (r *Report) Judge(b Budgets, l Limits) {
	r.Budgets = r.compare(b)
	reasons := r.invalid(l.orDefaults())
	r.Verdict = Verdict{Outcome: Pass}
	if len(reasons) > 0 {
		r.Verdict = Verdict{Outcome: Invalid, Reasons: reasons}
		return
	}
	for _, line := range r.Budgets {
		if !line.Kept {
			r.Verdict.Outcome = Fail
			r.Verdict.Reasons = append(r.Verdict.Reasons, fmt.Sprintf("%s is %s, the budget is %s", line.Name, line.Measured, line.Limit))
		}
	}
}

// SoFar is what the verdict would be by the target's budgets alone if the run ended now.
func (b Budgets) SoFar(l Live) string {
	over := func(limit, measured time.Duration) bool { return limit > 0 && measured > limit }
	allowed := max(b.Errors.Count, int64(b.Errors.Share*float64(l.Requests)))
	if over(b.P50, l.P50) || over(b.P99, l.P99) || over(b.P999, l.P999) || (!b.Errors.Any && l.Errors > allowed) {
		return Fail
	}
	return Pass
}

// compare lists the budgets that apply. Latencies of a closed loop are not judged.
func (r *Report) compare(b Budgets) []BudgetLine {
	var lines []BudgetLine
	if p := r.Total.Response; p != nil {
		for _, x := range []struct {
			name  string
			limit time.Duration
			us    int64
		}{{"response p50", b.P50, p.P50US}, {"response p99", b.P99, p.P99US}, {"response p99.9", b.P999, p.P999US}} {
			if x.limit > 0 {
				got := time.Duration(x.us) * time.Microsecond
				lines = append(lines, BudgetLine{Name: x.name, Limit: x.limit.String(), Measured: got.String(), Kept: got <= x.limit, limit: x.limit})
			}
		}
	}
	if !b.Errors.Any {
		n := r.Total.Errors()
		allowed := max(b.Errors.Count, int64(b.Errors.Share*float64(r.Total.Requests)))
		measured := strconv.FormatInt(n, 10)
		if b.Errors.Share > 0 && r.Total.Requests > 0 {
			measured = fmt.Sprintf("%.3g%%", 100*float64(n)/float64(r.Total.Requests))
		}
		lines = append(lines, BudgetLine{Name: "errors", Limit: b.Errors.String(), Measured: measured, Kept: n <= allowed})
	}
	if b.MinRate > 0 {
		lines = append(lines, BudgetLine{
			Name: "rate of right answers", Limit: fmt.Sprintf("at least %.1f/s", b.MinRate),
			Measured: fmt.Sprintf("%.1f/s", r.CompletedS), Kept: r.CompletedS >= b.MinRate,
		})
	}
	return lines
}

// invalid lists what makes the run say nothing about the target.
func (r *Report) invalid(l Limits) (reasons []string) {
	say := func(format string, a ...any) { reasons = append(reasons, fmt.Sprintf(format, a...)) }
	if r.Total.Requests == 0 {
		say("nothing was measured: the run ended before the first request after the warm-up")
	}
	if c := r.Connections; c.Established < c.Asked {
		say("only %d of %d connections were made", c.Established, c.Asked)
	}
	if r.Kind == OpenLoop && r.Planned > 0 {
		if share := float64(r.Planned-r.Total.Unsent) / float64(r.Planned); share < l.Achieved {
			say("only %.1f%% of the rate was sent: all connections were busy; use more of them or a lower rate", 100*share)
		}
		if lag := time.Duration(r.SendLag.P99US) * time.Microsecond; lag > l.LagP99 {
			say("send lag p99 is %v, over %v: the generator itself was late; give it a processor or more loops", lag, l.LagP99)
		}
	}
	if r.Stolen > l.Stolen {
		say("%.1f%% of the processor time was stolen by the hypervisor, over %.1f%%", 100*r.Stolen, 100*l.Stolen)
	}
	return reasons
}
