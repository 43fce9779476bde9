//go:build unix

package main

import (
	"bytes"
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

// verify checks what the lab promises, or one lesson.
func (l *lab) verify(ctx context.Context, args []string) error {
	pattern := "[0-9][0-9]-*.sh"
	if len(args) > 0 {
		pattern = args[0] + "-*.sh"
	}
	lessons, err := filepath.Glob(filepath.Join(l.root, "docs", "walkthrough", pattern))
	if err != nil {
		return err
	}
	if len(args) > 0 && len(lessons) != 1 {
		return fmt.Errorf("there is no lesson %q: `ls docs/walkthrough` shows them", args[0])
	}
	rows, err := l.inLab(ctx, func(s *labenv.State) []row {
		var rows []row
		if len(args) == 0 {
			rows = l.checkRoutes(ctx, s)
		}
		for _, script := range lessons {
			rows = append(rows, l.lesson(ctx, s, script))
		}
		return rows
	})
	if err != nil {
		return err
	}
	if len(args) == 0 {
		measured, err := (&bench{l: l, smoke: l.env("SMOKE") != ""}).run(ctx)
		if err != nil {
			return err
		}
		rows = append(rows, measured...)
	}
	return l.table(rows, l.env("SMOKE") != "")
}

// inLab does something in the lab that runs, or in one that is started for it: containers where there is an
// engine, else processes.
func (l *lab) inLab(ctx context.Context, do func(*labenv.State) []row) (rows []row, err error) {
	s, err := labenv.Load(l.root)
	switch {
	case err == nil:
		return do(s), nil
	case !errors.Is(err, labenv.ErrNone):
		return nil, err
	}
	start := l.startCompose
	if l.env("MODE") == "native" {
		start = l.startNative
	} else if err := l.mustBeFit(ctx, "up"); err != nil {
		l.say("no containers this time: %v", err)
		start = l.startNative
	}
	if s, err = start(ctx); err != nil {
		return nil, err
	}
	l.say("the lab runs (%s)", s.Mode)
	defer func() { err = errors.Join(err, l.down(context.WithoutCancel(ctx), nil)) }()
	return do(s), nil
}

// checkRoutes asks each route who answers.
func (l *lab) checkRoutes(ctx context.Context, s *labenv.State) []row {
	var rows []row
	for _, e := range s.Echoes {
		_, text, err := labenv.Ask(ctx, "GET", s.Proxy+"/svc-"+e.Name+"/hello", "")
		r := row{"route /svc-" + e.Name, "another answer", "echo-" + e.Name, fail}
		switch {
		case err != nil:
			r.measured = err.Error()
		case strings.Contains(text, `"instance":"echo-`+e.Name+`"`):
			r.measured, r.verdict = "echo-"+e.Name, pass
		}
		rows = append(rows, r)
	}
	return rows
}

// exitSkipped is how a lesson says that it needs what is not here.
const exitSkipped = 77

// lesson runs a script with the lab's addresses in its environment, and heals what it may have left broken.
func (l *lab) lesson(ctx context.Context, s *labenv.State, script string) row {
	name := strings.TrimSuffix(filepath.Base(script), ".sh")
	l.say("lesson %s ...", name)
	limit, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(limit, "bash", script)
	cmd.Dir, cmd.Env = l.root, append(os.Environ(), l.lessonEnv(s)...)
	cmd.WaitDelay = 5 * time.Second // what it started in the background may hold its output
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	err := cmd.Run()
	r := row{"lesson " + name, time.Since(begun).Round(time.Second).String(), "-", judge(err == nil)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == exitSkipped:
		r.verdict, r.measured = skipped, lastLine(out.String())
	case err != nil:
		r.measured = err.Error() + ": " + lastLine(out.String())
		l.say("%s", out.String())
	}
	if err := l.healAll(ctx, s); err != nil {
		l.say("after %s something stays broken: %v", name, err)
	}
	return r
}

// healAll begins with the state as the lesson left it: what it killed and healed has other process ids now.
func (l *lab) healAll(ctx context.Context, s *labenv.State) error {
	fresh, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	*s = *fresh
	var errs []error
	for _, e := range s.Echoes {
		if s.Condition(ctx, e) != "ok" {
			errs = append(errs, s.Heal(ctx, e.Name))
		}
	}
	return errors.Join(append(errs, s.Save(l.root))...)
}

func (l *lab) lessonEnv(s *labenv.State) []string {
	env := []string{
		"LAB_ROOT=" + l.root, "LAB_MODE=" + s.Mode, "LAB_PROXY=" + s.Proxy, "LAB_METRICS=" + s.Metrics, "LAB_CONFIG=" + s.Config,
		"LAB_PROMETHEUS=" + s.Prometheus, "LAB_LOADTEST=" + filepath.Join(l.binDir(), "loadtest"),
	}
	if self, err := os.Executable(); err == nil {
		env = append(env, "LAB="+self)
	}
	for _, e := range s.Echoes {
		env = append(env, "LAB_ECHO_"+strings.ToUpper(e.Name)+"="+e.Admin, "LAB_UPSTREAM_"+strings.ToUpper(e.Name)+"="+e.Upstream)
	}
	return env
}
