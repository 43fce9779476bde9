//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// demo starts the lab as processes in the background.
func (l *lab) demo(ctx context.Context, _ []string) error {
	s, err := l.startNative(ctx)
	if err != nil {
		return err
	}
	l.introduce(s)
	if s.Prometheus == "" {
		l.say("\nPrometheus is not here: install it, or name its binary in PROMETHEUS_BIN, for graphs and alerts")
	}
	return nil
}

func (l *lab) startNative(ctx context.Context) (*labenv.State, error) {
	if err := l.nothingRuns(); err != nil {
		return nil, err
	}
	if err := l.mustBeFit(ctx, "demo"); err != nil {
		return nil, err
	}
	ports, err := labenv.PortsFrom(l.env)
	if err != nil {
		return nil, err
	}
	bin, err := labenv.Build(ctx, l.root, l.binDir(), "")
	if err != nil {
		return nil, err
	}
	s, err := labenv.StartNative(ctx, l.root, labenv.Native{
		Dir: labenv.Dir(l.root), Binaries: bin, Ports: ports, Prometheus: labenv.FindPrometheus(),
	})
	if err != nil {
		return nil, err
	}
	return s, l.keep(ctx, s)
}

// keep saves the state, without which nobody could end the lab.
func (l *lab) keep(ctx context.Context, s *labenv.State) error {
	if err := s.Save(l.root); err != nil {
		return errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
	return nil
}

func (l *lab) binDir() string { return filepath.Join(labenv.Dir(l.root), "bin") }

// nothingRuns is an error if there is a lab already.
func (l *lab) nothingRuns() error {
	s, err := labenv.Load(l.root)
	if errors.Is(err, labenv.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("a lab (%s) is running since %s: `task down` ends it", s.Mode, s.Started.Local().Format(time.TimeOnly))
}

// up starts the lab as containers.
func (l *lab) up(ctx context.Context, _ []string) error {
	s, err := l.startCompose(ctx)
	if err != nil {
		return err
	}
	l.introduce(s)
	return nil
}

func (l *lab) startCompose(ctx context.Context) (*labenv.State, error) {
	if err := l.nothingRuns(); err != nil {
		return nil, err
	}
	if err := l.mustBeFit(ctx, "up"); err != nil {
		return nil, err
	}
	ports, err := labenv.PortsFrom(l.env)
	if err != nil {
		return nil, err
	}
	c, err := l.project(ctx, ports)
	if err != nil {
		return nil, err
	}
	s, err := labenv.StartCompose(ctx, c, ports)
	if err != nil {
		return nil, err
	}
	return s, l.keep(ctx, s)
}

// project has everything that can be had: images are built, those of others are present or pulled.
func (l *lab) project(ctx context.Context, ports labenv.Ports) (labenv.Compose, error) {
	flavour, err := labenv.ComposeFlavour(ctx)
	if err != nil {
		return labenv.Compose{}, err
	}
	images, err := labenv.BuildImages(ctx, l.root, l.binDir())
	if err != nil {
		return labenv.Compose{}, err
	}
	c := labenv.Compose{
		Flavour: flavour, Root: l.root, Project: l.or("LAB_PROJECT", "ferryman-lab"), Files: []string{"core.yml"},
		Env: append(images.Env(), ports.Env()...),
	}
	if l.observable(ctx) {
		c.Files = append(c.Files, "observability.yml")
	}
	return c, nil
}

// observable reports whether the images for graphs are here, after trying to get them.
func (l *lab) observable(ctx context.Context) bool {
	for _, variable := range []string{"PROMETHEUS_IMAGE", "GRAFANA_IMAGE"} {
		name, err := l.foreignImage(variable)
		if err != nil {
			l.say("%v", err)
			return false
		}
		if labenv.HasImage(ctx, name) {
			continue
		}
		l.say("pulling %s ...", name)
		limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
		out, err := exec.CommandContext(limit, "docker", "pull", "--quiet", name).CombinedOutput()
		cancel()
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			l.say("no graphs this time: %s is not here and cannot be pulled (%s): load it with `docker load`, or name another one in %s",
				name, lines[len(lines)-1], variable)
			return false
		}
	}
	return true
}

func (l *lab) or(variable, usual string) string {
	if v := l.env(variable); v != "" {
		return v
	}
	return usual
}

// down ends whichever lab runs.
func (l *lab) down(ctx context.Context, _ []string) error {
	s, err := labenv.Load(l.root)
	if errors.Is(err, labenv.ErrNone) {
		l.say("no lab is running")
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.End(ctx); err != nil {
		return err
	}
	if err := labenv.Forget(l.root); err != nil {
		return err
	}
	l.say("the lab (%s) has ended", s.Mode)
	return nil
}

func (l *lab) wait(ctx context.Context, _ []string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	return s.Ready(ctx, time.Minute)
}

func (l *lab) urls(_ context.Context, _ []string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	l.printURLs(s)
	return nil
}

func (l *lab) printURLs(s *labenv.State) {
	l.say("  proxy       %s/svc-a/ (and /svc-b/, /svc-c/)", s.Proxy)
	l.say("  metrics     %s/metrics", s.Metrics)
	for _, e := range s.Echoes {
		l.say("  echo-%s      %s/fault (admin)", e.Name, e.Admin)
	}
	if s.Prometheus != "" {
		l.say("  prometheus  %s/alerts", s.Prometheus)
	}
	if s.Grafana != "" {
		l.say("  grafana     %s", s.Grafana)
	}
	l.say("  config      %s", s.Config)
}

func (l *lab) introduce(s *labenv.State) {
	l.say("the lab runs (%s):", s.Mode)
	l.printURLs(s)
	l.say("\ntry:")
	for _, try := range [][2]string{
		{"curl -i " + s.Proxy + "/svc-a/hello", "echo-a says what it saw"},
		{"task watch", "in another terminal: what happens, as it happens"},
		{"task kill UPSTREAM=a", "or pause, slow, errors"},
		{"curl -i " + s.Proxy + "/svc-a/hello", "502 a few times, then 503 at once; /svc-b notices nothing"},
		{"task heal UPSTREAM=a", "back within a health interval"},
		{"task down", "ends all of it"},
	} {
		l.say("  %-45s # %s", try[0], try[1])
	}
}
