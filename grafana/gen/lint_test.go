package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDashboard_LintIsQuiet(t *testing.T) {
	require.Empty(t, lint(readBoard(t)))
}

// lint returns what is wrong with b, a line each.
func lint(b board) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if v := b.Templating.List; len(v) != 1 || v[0].Type != "datasource" || v[0].Query != "prometheus" || v[0].Current.Value != datasourceUID {
		say("the one variable must be a datasource of type prometheus that starts as %s", datasourceUID)
	}
	for _, a := range b.Annotations.List {
		if !fromVariable(a.Datasource) {
			say("annotation %s: the datasource is not the variable", a.Name)
		}
		if !a.Enable || a.TitleFormat == "" {
			say("annotation %s: it is off, or has no title", a.Name)
		}
		problems = append(problems, lintExpr("annotation "+a.Name, a.Expr)...)
	}
	for _, p := range b.Panels {
		if p.Type != "row" {
			problems = append(problems, lintPanel(p)...)
		} else if p.Title == "" || len(p.Panels) > 0 {
			say("row %d: it has no title, or hides panels", p.ID)
		}
	}
	return append(problems, lintPlaces(b.Panels)...)
}

func fromVariable(d *datasource) bool {
	return d != nil && *d == datasource{"prometheus", "${datasource}"}
}

func lintPanel(p panel) (problems []string) {
	where := fmt.Sprintf("panel %d %q", p.ID, p.Title)
	bad := func(is bool, what string) {
		if is {
			problems = append(problems, where+": "+what)
		}
	}
	bad(p.Title == "", "no title")
	bad(!strings.HasPrefix(p.Description, "Look for ") || !strings.HasSuffix(p.Description, "."),
		`the description is no sentence that starts with "Look for"`)
	bad(!fromVariable(p.Datasource), "the datasource is not the variable")
	bad(p.FieldConfig.Defaults.Unit == "", "no unit")
	bad(p.Type != "stat" && (p.Options.Legend == nil || !(p.Options.Legend.ShowLegend || p.Options.Legend.Show)), "no legend")
	bad(len(p.Targets) == 0, "no query")
	refs := map[string]bool{}
	for _, q := range p.Targets {
		bad(!fromVariable(q.Datasource), "the datasource of a query is not the variable")
		bad(q.LegendFormat == "" || q.LegendFormat == "__auto", "a query without a legend of its own")
		bad(q.RefID == "" || refs[q.RefID], "two queries with one name")
		refs[q.RefID] = true
		problems = append(problems, lintExpr(where, q.Expr)...)
	}
	return problems
}

var (
	window  = regexp.MustCompile(`(\w+)\s*\(\s*[\w:]+(?:\{[^}]*\})?\[([^\]]*)\]`)
	counter = regexp.MustCompile(`(\w*)\s*\(?\s*\b(\w+_(?:total|bucket|sum|count))\b(?:\{[^}]*\})?(\[)?`)
)

func lintExpr(where, expr string) (problems []string) {
	for _, m := range window.FindAllStringSubmatch(expr, -1) {
		if m[2] != "$__rate_interval" && !(m[1] == "increase" && m[2] == "$__range") {
			problems = append(problems, fmt.Sprintf("%s: %s over %s instead of $__rate_interval", where, m[1], m[2]))
		}
	}
	for _, m := range counter.FindAllStringSubmatch(expr, -1) {
		if m[3] == "" || (m[1] != "rate" && m[1] != "increase") {
			problems = append(problems, fmt.Sprintf("%s: %s outside of rate and increase", where, m[2]))
		}
	}
	return problems
}

// lintPlaces demands a grid without overlap and gaps in width, and ids that are there once.
func lintPlaces(panels []panel) (problems []string) {
	ids := map[int]bool{}
	taken := map[[2]int]int{}
	width := map[int]int{}
	for _, p := range panels {
		if p.ID <= 0 || ids[p.ID] {
			problems = append(problems, fmt.Sprintf("panel %d %q: no id, or one that is taken", p.ID, p.Title))
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > gridWidth {
			problems = append(problems, fmt.Sprintf("panel %d: it leaves the grid", p.ID))
			continue
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != 0 {
					problems = append(problems, fmt.Sprintf("panel %d covers panel %d", p.ID, other))
				}
				taken[[2]int{x, y}] = p.ID
				width[y]++
			}
		}
	}
	for y, w := range width {
		if w < gridWidth {
			problems = append(problems, fmt.Sprintf("line %d of the grid has a gap", y))
		}
	}
	return problems
}

// What lint must not let through: a change of the committed text, and the complaint.
func TestLint_FindsWhatIsWrong(t *testing.T) {
	text, err := os.ReadFile(committed)
	require.NoError(t, err)
	for _, c := range []struct{ name, old, new, want string }{
		{"fixed datasource", `"uid": "${datasource}"`, `"uid": "x"`, "datasource"},
		{"other variable", datasourceUID, "elsewhere", "variable"},
		{"title", `"title": "Goroutines"`, `"title": ""`, "no title"},
		{"description", `Look for a flat line`, `A flat line`, "Look for"},
		{"unit", `"unit": "bytes"`, `"unit": ""`, "no unit"},
		{"hidden legend", `"showLegend": true`, `"showLegend": false`, "no legend"},
		{"legend of a query", `"legendFormat": "{{route}}"`, `"legendFormat": "__auto"`, "without a legend"},
		{"window", `ferryman_requests_total[$__rate_interval]`, `ferryman_requests_total[1m]`, "rate over 1m"},
		{"raw counter", `sum(ferryman_upstream_alive)`, `sum(ferryman_requests_total)`, "ferryman_requests_total outside"},
		{"raw counter with labels", `sum(ferryman_upstream_alive)`, `sum(x_total{a=\"b\"})`, "x_total outside"},
		{"delta of a counter", `sum(rate(loadtest_requests_total[`, `sum(delta(loadtest_requests_total[`, "outside of rate"},
		{"id", `"id": 7,`, `"id": 8,`, "taken"},
		{"overlap", "\"w\": 8,\n        \"x\": 8,", "\"w\": 8,\n        \"x\": 7,", "covers"},
		{"gap", "\"w\": 12,\n        \"x\": 12,", "\"w\": 11,\n        \"x\": 12,", "gap"},
		{"outside", "\"w\": 12,\n        \"x\": 12,", "\"w\": 13,\n        \"x\": 12,", "leaves the grid"},
		{"annotation", `"enable": true`, `"enable": false`, "it is off"},
		{"reference", `"refId": "B"`, `"refId": "A"`, "two queries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, string(text), c.old)
			broken := strings.ReplaceAll(string(text), c.old, c.new)
			require.Contains(t, strings.Join(lint(parseBoard(t, []byte(broken))), "\n"), c.want)
		})
	}
}
