// Package gate decides whether a comparison shows a regression. Its rules are about things that do
// not depend on how fast or how busy the machine is: allocations, system calls, and the ratio to
// another program in the same run.
//
//	verdicts := gate.Judge(run, gate.Defaults())
//	if !gate.Passed(verdicts) { ... }
//
// What could not be measured does not pass.
package gate

import (
	"fmt"

	"github.com/Bunty9/ferryman/benches/compare/contender"
	"github.com/Bunty9/ferryman/benches/compare/report"
	"github.com/Bunty9/ferryman/benches/compare/stats"
)

// Limits are the most that is allowed, each for ferryman under saturation by small requests.
type Limits struct {
	Allocations float64 // a request; what the runtime does now and then is not a request's
	SystemCalls float64 // a request
	NginxRatio  float64 // of processor time a request to NGINX tuned
	FloorRatio  float64 // the same to the relay that parses nothing; judged where there is no NGINX
}

// Defaults are the limits that hold in CI. The goal is a ratio of 0.9 to NGINX: the rest is margin
// for machines that are busy with something else.
func Defaults() Limits {
	return Limits{Allocations: 0.1, SystemCalls: 4.5, NginxRatio: 1.25, FloorRatio: 1.75}
}

// Verdict is a rule with what was measured.
type Verdict struct {
	Rule     string
	Limit    float64
	Measured stats.Summary
	Kept     bool
	Why      string // there is no measurement: why
}

func (v Verdict) String() string {
	word := "ok  "
	if !v.Kept {
		word = "FAIL"
	}
	if v.Measured.N == 0 {
		return fmt.Sprintf("%s %s: not measured: %s", word, v.Rule, v.Why)
	}
	return fmt.Sprintf("%s %s: %.3f (%.3f to %.3f, n=%d), at most %.3g", word, v.Rule, v.Measured.Median, v.Measured.Low,
		v.Measured.High, v.Measured.N, v.Limit)
}

// Passed reports whether every rule was kept. No verdicts are no pass.
func Passed(verdicts []Verdict) bool {
	for _, v := range verdicts {
		if !v.Kept {
			return false
		}
	}
	return len(verdicts) > 0
}

// Judge applies the limits to the saturated section of a run. Medians of pairs decide, and counts over
// all windows together.
func Judge(run *report.Run, l Limits) []Verdict {
	closed, rows := saturated(run), map[string]report.Row{}
	for _, row := range closed.Rows {
		rows[row.Contender] = row
	}
	own, nginx, floor := rows[contender.Ferryman], rows[contender.NginxTuned], rows[contender.Floor]
	ratio := judge("processor time a request, ferryman to NGINX tuned", nginx.CPURatio, l.NginxRatio, nginx.Note)
	if nginx.CPURatio.N == 0 && floor.CPURatio.N > 0 {
		ratio = judge("processor time a request, ferryman to the relay that parses nothing", floor.CPURatio, l.FloorRatio, floor.Note)
	}
	untraced := "no system calls were counted: install perf or strace"
	if run.Tracer != "" {
		untraced = own.Note
	}
	return []Verdict{
		judge("allocations a request", closed.Pooled(contender.Ferryman, report.Allocations), l.Allocations, own.Note),
		judge("system calls a request", closed.Pooled(contender.Ferryman, report.SystemCalls), l.SystemCalls, untraced),
		ratio,
	}
}

// saturated is the section that is judged. A run without one is judged by an empty section: nothing
// in it was measured.
func saturated(run *report.Run) *report.Section {
	for i := range run.Sections {
		if run.Sections[i].Rate == 0 {
			return &run.Sections[i]
		}
	}
	return &report.Section{}
}

func judge(rule string, measured stats.Summary, limit float64, why string) Verdict {
	if measured.N == 0 && why == "" {
		why = "no block of it counts"
	}
	return Verdict{Rule: rule, Limit: limit, Measured: measured, Kept: measured.N > 0 && measured.Median <= limit, Why: why}
}
