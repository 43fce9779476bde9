package main

import (
	"regexp"
	"testing"
)

// rule is an alert or a recording.
type rule struct {
	Record, Alert, Expr string
	Annotations         map[string]string
}

func readRules(t *testing.T, name string) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, "../../prometheus/rules/"+name, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

var (
	comparison = regexp.MustCompile(`(==|!=|>=|<=|>|<) ([0-9])`)
	recorded   = regexp.MustCompile(`\w+:\w+:\w+`)
)

// ruleExpressions are those of a file. An alert that is quiet has no result, by design, so its comparisons
// are made questions here: they answer 0 or 1, and nothing at all where what they compare does not exist.
// Recordings are written out, so that a file need not be loaded.
func ruleExpressions(t *testing.T, name string, recordings ...string) (all []expression) {
	t.Helper()
	known := map[string]string{}
	for _, from := range recordings {
		for _, r := range readRules(t, from) {
			known[r.Record] = r.Expr
		}
	}
	for _, r := range readRules(t, name) {
		expr := r.Expr
		if r.Alert != "" {
			expr = comparison.ReplaceAllString(expr, "$1 bool $2")
		}
		for recorded.MatchString(expr) {
			expr = recorded.ReplaceAllStringFunc(expr, func(name string) string {
				if known[name] == "" {
					t.Fatalf("%s is recorded nowhere", name)
				}
				return "(" + known[name] + ")"
			})
		}
		all = append(all, expression{"rule " + r.Record + r.Alert + " of " + name, expr, r.Annotations["summary"]})
	}
	return all
}

// allRules are the expressions of all three files.
func allRules(t *testing.T) []expression {
	t.Helper()
	all := ruleExpressions(t, "recording.yml", "recording.yml")
	all = append(all, ruleExpressions(t, "alerts.lab.yml", "recording.yml")...)
	return append(all, ruleExpressions(t, "alerts.production.yml", "alerts.production.yml")...)
}
