package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// families are what a page of metrics has: the labels by family, with those that Prometheus adds.
type families map[string][]string

var (
	sample    = regexp.MustCompile(`^([a-zA-Z_]\w*)(?:\{(.*)\})? \S+`)
	labelPair = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

func (f families) read(t *testing.T, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			f[strings.Fields(name)[0]] = []string{"job", "instance"}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := f.family(m[1])
		require.NotEmpty(t, name, "a sample without a family: %s", line)
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			f[name] = append(f[name], pair[1])
		}
	}
}

// family is the one that a name of a series belongs to, or "".
func (f families) family(name string) string {
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && f[base] != nil {
			return base
		}
	}
	return ""
}

var (
	ours     = regexp.MustCompile(`(?:^|[^\w:])((?:ferryman|echo|loadtest)_\w*[a-z0-9])\b(:|\.\w+)?`)
	selector = regexp.MustCompile(`([a-zA-Z_]\w*)\{([^{}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	legend   = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
	anyName  = regexp.MustCompile(`[a-zA-Z_]\w*`)
)

// check returns what an expression and the text for its series name that does not exist.
func (f families) check(e expression) (missing []string) {
	labels := []string{}
	for _, m := range ours.FindAllStringSubmatch(e.expr, -1) {
		if m[2] == "" && f.family(m[1]) == "" {
			missing = append(missing, m[1])
		}
	}
	for _, name := range anyName.FindAllString(e.expr, -1) {
		labels = append(labels, f[f.family(name)]...)
	}
	if strings.Contains(e.expr, "up{") {
		labels = append(labels, "job", "instance")
	}
	for _, m := range selector.FindAllStringSubmatch(e.expr, -1) {
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if m[1] != "up" && !slices.Contains(f[f.family(m[1])], label[1]) {
				missing = append(missing, m[1]+"{"+label[1]+"}")
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(e.expr, -1) {
		for _, label := range anyName.FindAllString(m[1], -1) {
			if !slices.Contains(labels, label) {
				missing = append(missing, "label "+label)
			}
		}
	}
	for _, m := range legend.FindAllStringSubmatch(e.template, -1) {
		if !slices.Contains(labels, m[1]) {
			missing = append(missing, "label "+m[1])
		}
	}
	return missing
}

// documents are the texts that people read, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	}
	for _, root := range []string{"../../README.md", "../../docs", "../../prometheus", "../../grafana"} {
		require.NoError(t, filepath.WalkDir(root, add))
	}
	return found
}

var tableRow = regexp.MustCompile("(?m)^\\| `((?:ferryman|echo|loadtest)_\\w+)` \\| ([^|]*) \\|")

// checkDocument returns the names in a text, and the labels in its tables, that do not exist.
func (f families) checkDocument(text string) (missing []string) {
	for _, m := range ours.FindAllStringSubmatch(text, -1) {
		if m[2] == "" && f.family(m[1]) == "" { // else a recording, or a file
			missing = append(missing, m[1])
		}
	}
	for _, m := range tableRow.FindAllStringSubmatch(text, -1) {
		for _, label := range anyName.FindAllString(m[2], -1) {
			if !slices.Contains(f[m[1]], label) {
				missing = append(missing, m[1]+"{"+label+"}")
			}
		}
	}
	return missing
}

func (l *lab) testNames(t *testing.T) {
	all, own := families{}, families{}
	for _, url := range []string{l.metrics, l.load, strings.TrimPrefix(l.admins[0], "http://")} {
		status, page := ask(t.Context(), "GET", "http://"+url+"/metrics", "")
		require.Equal(t, 200, status)
		all.read(t, page)
		if url == l.metrics {
			own.read(t, page)
		}
	}
	// The lab speaks no TLS.
	all["ferryman_certificate_expiry_timestamp_seconds"] = []string{"name"}
	expressions := append(readBoard(t).expressions(), allRules(t)...)
	used := ""
	for _, e := range expressions {
		require.Empty(t, all.check(e), "%s names what is on no page: %s", e.where, e.expr)
		used += e.expr + "\n"
	}
	for path, text := range documents(t) {
		require.Empty(t, all.checkDocument(text), "%s names what is on no page", path)
		used += text
	}
	for name := range own {
		group, _, _ := strings.Cut(name, "_")
		known := regexp.MustCompile(`\b` + name + `(_bucket|_sum|_count)?\b`).MatchString(used)
		require.True(t, known || strings.Contains(used, "`"+group+"_*`"), "%s is neither used nor documented", name)
	}
}

// What must not go through.
func TestNames_WhatDoesNotExistIsFound(t *testing.T) {
	f := families{}
	f.read(t, "# TYPE ferryman_x_seconds histogram\nferryman_x_seconds_bucket{route=\"/\",le=\"+Inf\"} 1\n# TYPE echo_up gauge\necho_up 1\n")
	for _, ok := range []expression{
		{"", `sum by (le, job) (rate(ferryman_x_seconds_bucket{route="/"}[4s]))`, "{{le}}"},
		{"", `echo_up{instance="a"}`, "{{ $labels.instance }}"},
	} {
		require.Empty(t, f.check(ok), ok.expr)
	}
	for _, c := range []struct {
		e    expression
		want string
	}{
		{expression{"", `ferryman_y`, ""}, "ferryman_y"},
		{expression{"", `rate(ferryman_x_seconds_total[4s])`, ""}, "ferryman_x_seconds_total"},
		{expression{"", `echo_up{route="/"}`, ""}, "echo_up{route}"},
		{expression{"", `sum by (route) (echo_up)`, ""}, "label route"},
		{expression{"", `echo_up`, "{{route}}"}, "label route"},
	} {
		require.Equal(t, []string{c.want}, f.check(c.e), c.e.expr)
	}
	require.Empty(t, f.checkDocument("| `ferryman_x_seconds` | `route` | says route:ferryman_z:rate1m, loadtest_linux.go and `ferryman_*` |"))
	require.Equal(t, []string{"echo_gone", "ferryman_x_seconds{status}"}, f.checkDocument("echo_gone\n| `ferryman_x_seconds` | `status` | |"))
}
