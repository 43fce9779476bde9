package gate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/benches/compare/gate"
	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/report"
)

// cost is what ferryman is made to cost in a recorded run; the others cost what they do.
type cost struct {
	cpuUS       float64
	calls       float64
	allocations float64
	noNginx     bool
	noTracer    bool
	wrong       bool // the answers of NGINX
}

func healthy() cost { return cost{cpuUS: 16, calls: 4.2, allocations: 0.004} }

func recorded(c cost) *report.Run {
	r := &report.Run{Reference: "ferryman", Tracer: "perf", Contenders: []report.Contender{
		{Name: "floor", Process: true}, {Name: "ferryman", Process: true}, {Name: "nginx-tuned", Process: true},
	}}
	s := report.Section{Load: "saturated", Connections: 256}
	add := func(name, against string, pair int, us float64, refused string) {
		s.Blocks = append(s.Blocks, report.Block{
			Contender: name, Against: against, Pair: pair, WindowS: 1, CPUS: us * 30_000 / 1e6, Refused: refused,
			Outcome: load.Outcome{Requests: 30_000, Right: 30_000, RightRate: 30_000},
		})
	}
	for pair, busy := range []float64{1, 1.3, 0.95, 1.1, 1.6, 1} { // what others do to the machine
		add("ferryman", "floor", pair, c.cpuUS*busy, "")
		add("floor", "ferryman", pair, 12*busy, "")
		if c.noNginx {
			continue
		}
		refused := ""
		if c.wrong {
			refused = "5 answers were wrong (status)"
		}
		add("ferryman", "nginx-tuned", pair, c.cpuUS*busy, "")
		add("nginx-tuned", "ferryman", pair, 18*busy, refused)
	}
	for range 3 {
		s.Probes = append(s.Probes, report.Probe{Contender: "ferryman", Kind: report.Allocations, Requests: 30_000, Count: 30_000 * c.allocations})
		if !c.noTracer {
			s.Probes = append(s.Probes, report.Probe{Contender: "ferryman", Kind: report.SystemCalls, Requests: 30_000, Count: 30_000 * c.calls})
		}
	}
	if c.noTracer {
		r.Tracer = ""
	}
	if c.noNginx {
		s.Absent = map[string]string{"nginx-tuned": "not found: apt-get install nginx"}
	}
	fixed := report.Section{Load: "heavy", Rate: 1000} // is not judged
	r.Sections = []report.Section{fixed, s}
	r.Sum()
	return r
}

func TestGate_FiresOnEachRuleAndOnNothingElse(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*cost)
		broken string // part of the rule that must fire; empty: none
	}{
		{"healthy", func(*cost) {}, ""},
		{"as slow as NGINX and a little more", func(c *cost) { c.cpuUS = 22 }, ""},
		{"twice as slow", func(c *cost) { c.cpuUS = 32 }, "ferryman to NGINX"},
		{"just over the ratio", func(c *cost) { c.cpuUS = 18 * 1.26 }, "ferryman to NGINX"},
		{"an allocation a request", func(c *cost) { c.allocations = 1 }, "allocations"},
		{"an allocation in every fifth request", func(c *cost) { c.allocations = 0.2 }, "allocations"},
		{"one system call more", func(c *cost) { c.calls = 5.2 }, "system calls"},
		{"no NGINX, healthy", func(c *cost) { c.noNginx = true }, ""},
		{"no NGINX, twice as slow", func(c *cost) { c.noNginx, c.cpuUS = true, 32 }, "relay that parses nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := healthy()
			c.spoil(&k)
			verdicts := gate.Judge(recorded(k), gate.Defaults())
			require.Len(t, verdicts, 3)
			require.Equal(t, c.broken == "", gate.Passed(verdicts))
			for _, v := range verdicts {
				if v.Kept {
					require.Contains(t, v.String(), "ok ")
					continue
				}
				require.NotEmpty(t, c.broken)
				require.Contains(t, v.Rule, c.broken)
				require.Contains(t, v.String(), "FAIL")
			}
		})
	}
}

func TestGate_WhatWasNotMeasuredDoesNotPass(t *testing.T) {
	k := healthy()
	k.noTracer = true
	verdicts := gate.Judge(recorded(k), gate.Defaults())
	require.False(t, gate.Passed(verdicts))
	require.Contains(t, verdicts[1].String(), "install perf or strace")

	k = healthy()
	k.wrong = true
	run := recorded(k)
	run.Sections[1].Blocks = run.Sections[1].Blocks[:0]
	run.Sum()
	verdicts = gate.Judge(run, gate.Defaults())
	require.False(t, gate.Passed(verdicts))
	require.Contains(t, verdicts[2].String(), "not measured")

	require.False(t, gate.Passed(nil))
	require.False(t, gate.Passed(gate.Judge(&report.Run{}, gate.Defaults())))
}

// Where NGINX gives wrong answers there is still the relay.
func TestGate_FallsBackToTheRelayWhereNginxIsWrong(t *testing.T) {
	k := healthy()
	k.wrong, k.cpuUS = true, 32
	verdicts := gate.Judge(recorded(k), gate.Defaults())
	require.Contains(t, verdicts[2].Rule, "relay")
	require.False(t, verdicts[2].Kept)
}
