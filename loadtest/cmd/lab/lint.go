//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// Pinned linters, built once into .lab/tools.
const (
	golangciLint = "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0"
	actionlint   = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
)

const dashboardFresh = `new=$(mktemp); trap 'rm -f "$new"' EXIT; go run ./grafana/gen "$new"
cmp "$new" grafana/dashboards/ferryman.json || { echo "run go run ./grafana/gen grafana/dashboards/ferryman.json"; exit 1; }`

// errAbsent is what a linter returns when the tool is not here, or there is nothing to look at.
var errAbsent = errors.New("not here")

// lint runs every linter, whatever the others say.
func (l *lab) lint(ctx context.Context, _ []string) error {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"gofmt", l.lintFormat},
		{"promtool", l.lintRules}, {"compose files", l.lintCompose},
		{"dashboard is up to date", func(ctx context.Context) error { return l.sh(ctx, ".", dashboardFresh) }},
		{"actionlint", l.lintWorkflows}, {"golangci-lint", l.lintModules},
	}
	var rows []row
	for _, s := range steps {
		begun := time.Now()
		err := s.do(ctx)
		r := row{s.name, time.Since(begun).Round(100 * time.Millisecond).String(), "-", judge(err == nil)}
		switch {
		case errors.Is(err, errAbsent):
			r.verdict, r.measured = skipped, err.Error()
		case err != nil:
			l.say("--- %s\n%v", s.name, err)
		}
		rows = append(rows, r)
	}
	return l.table(rows, false)
}

// sh runs a line of shell in a folder of the repository; its error is what it printed.
func (l *lab) sh(ctx context.Context, dir, line string, env ...string) error {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = filepath.Join(l.root, dir), append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s (%w)", strings.TrimSpace(string(out)), err)
	}
	return nil
}

func (l *lab) lintFormat(ctx context.Context) error {
	return l.sh(ctx, ".", `bad=$(git ls-files -z '*.go' | xargs -0 gofmt -l); [ -z "$bad" ] || { echo "run gofmt -w on:"; echo "$bad"; exit 1; }`)
}

func (l *lab) lintRules(ctx context.Context) error {
	if _, err := exec.LookPath("promtool"); err != nil {
		return fmt.Errorf("promtool is %w", errAbsent)
	}
	return l.sh(ctx, "prometheus", "promtool check rules rules/*.yml && promtool test rules tests/*.yml")
}

// lintCompose reads each combination with each flavour that is here.
func (l *lab) lintCompose(ctx context.Context) error {
	found := false
	for _, flavour := range labenv.ComposeFlavours {
		line := strings.Join(flavour, " ")
		if l.sh(ctx, ".", line+" version") != nil {
			continue
		}
		found = true
		const core, graphs, bench = " -f compose/core.yml", " -f compose/observability.yml", " -f compose/bench.yml"
		for _, files := range []string{core, core + graphs, core + bench, core + graphs + bench} {
			if err := l.sh(ctx, ".", line+files+" config -q"); err != nil {
				return fmt.Errorf("%s%s: %w", line, files, err)
			}
		}
	}
	if !found {
		return fmt.Errorf("compose is %w", errAbsent)
	}
	return nil
}

func (l *lab) lintWorkflows(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(l.root, ".github", "workflows")); err != nil {
		return fmt.Errorf("workflows are %w", errAbsent)
	}
	bin, err := l.install(ctx, actionlint)
	if err != nil {
		return err
	}
	return l.sh(ctx, ".", bin)
}

// lintModules looks at all modules at once, so that what they all stand on is looked at once. go vet is
// part of it. That each module builds by its own requirements is for CI's step of that name.
func (l *lab) lintModules(ctx context.Context) error {
	bin, err := l.install(ctx, golangciLint)
	if err != nil {
		return err
	}
	return l.sh(ctx, ".", bin+" run --allow-parallel-runners --timeout 15m --build-tags integration,clients ./... ./ferryman/... ./echo-upstream/...")
}

// install builds a tool once for each version.
func (l *lab) install(ctx context.Context, tool string) (string, error) {
	path, version, _ := strings.Cut(tool, "@")
	dir := filepath.Join(labenv.Dir(l.root), "tools", version)
	bin := filepath.Join(dir, filepath.Base(path))
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	return bin, l.sh(ctx, ".", "go install "+tool, "GOWORK=off", "CGO_ENABLED=0", "GOBIN="+dir)
}
