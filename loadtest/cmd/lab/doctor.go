//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// finding is one line of the doctor's. A fix is there for all that is not in order.
type finding struct {
	level     string // ok, missing or bad
	what, fix string
}

// doctor tells what is missing here. It fails where the lab could not start at all.
func (l *lab) doctor(ctx context.Context, args []string) error {
	modes := []string{"demo", "up"}
	if len(args) > 0 {
		modes = args
	}
	bad := 0
	for _, mode := range modes {
		found, err := l.examine(ctx, mode)
		if err != nil {
			return err
		}
		l.say("for `task %s`:", mode)
		w := tabwriter.NewWriter(l.stdout, 0, 0, 2, ' ', 0)
		here := 0
		for _, f := range found {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", f.level, f.what, f.fix)
			if f.level == "bad" {
				here++
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if here > 0 {
			bad++
		}
	}
	if bad == len(modes) { // one way to run the lab is enough
		return status(1)
	}
	return nil
}

// mustBeFit is an error with all that stands in the way of a mode.
func (l *lab) mustBeFit(ctx context.Context, mode string) error {
	found, err := l.examine(ctx, mode)
	if err != nil {
		return err
	}
	var bad []error
	for _, f := range found {
		if f.level == "bad" {
			bad = append(bad, fmt.Errorf("%s: %s", f.what, f.fix))
		}
	}
	return errors.Join(bad...)
}

func (l *lab) examine(ctx context.Context, mode string) ([]finding, error) {
	var found []finding
	switch mode {
	case "demo":
		found = append(found, tool("go", "", "install Go 1.26 or later", "bad"))
		found = append(found, tool("prometheus", "PROMETHEUS_BIN", "install it (Debian: prometheus) for graphs and alerts", "missing"))
	case "up":
		found = append(found, tool("go", "", "install Go 1.26, or run `docker compose -f compose/core.yml up --build`", "bad"))
		found = append(found, l.engine(ctx)...)
	default:
		return nil, fmt.Errorf("%q is neither demo nor up", mode)
	}
	ports, err := l.ports(mode)
	if err != nil {
		return nil, err
	}
	found = append(append(found, ports...), memory())
	for _, t := range [][2]string{{"promtool", "comes with Prometheus"}, {"nginx", "for bench:nginx"}, {"haproxy", "for bench:nginx"}, {"caddy", "for bench:nginx"}} {
		found = append(found, tool(t[0], "", t[1], "missing"))
	}
	if l.env("WRK2_BIN") == "" {
		found = append(found, finding{"missing", "wrk2", "name yours in WRK2_BIN, for GENERATOR=wrk2 only"})
	}
	return found, nil
}

func tool(name, variable, fix, level string) finding {
	if variable != "" && os.Getenv(variable) != "" {
		name = os.Getenv(variable)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return finding{level, name + " is not here", fix}
	}
	return finding{"ok", path, ""}
}

func (l *lab) engine(ctx context.Context) []finding {
	arch, err := labenv.EngineArch(ctx)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return []finding{{"bad", first, "install and start Docker (Debian: docker.io)"}}
	}
	what := "Docker engine on " + arch
	if arch != runtime.GOARCH {
		what += ", while this machine is " + runtime.GOARCH + ": images are built for the engine"
	}
	found := []finding{{"ok", what, ""}}
	flavour, err := labenv.ComposeFlavour(ctx)
	if err != nil {
		return append(found, finding{"bad", "no compose", err.Error()})
	}
	found = append(found, finding{"ok", strings.Join(flavour, " "), ""})
	for _, variable := range []string{"PROMETHEUS_IMAGE", "GRAFANA_IMAGE"} {
		name, err := l.foreignImage(variable)
		if err == nil && !labenv.HasImage(ctx, name) {
			found = append(found, finding{"missing", "image " + name, "`docker pull` it, or name another one in " + variable})
		}
	}
	return found
}

// ports are those that a mode needs, unless the lab that has them is ours.
func (l *lab) ports(mode string) ([]finding, error) {
	if _, err := labenv.Load(l.root); err == nil {
		return []finding{{"ok", "the lab runs, so its ports are taken", ""}}, nil
	}
	p, err := labenv.PortsFrom(l.env)
	if err != nil {
		return nil, err
	}
	needed := []int{p.Proxy, p.Metrics, p.Prometheus}
	if mode == "up" {
		needed = append(needed, p.Grafana)
	} else {
		needed = append(needed, p.Data[:]...)
	}
	var found []finding
	for _, port := range append(needed, p.Admin[:]...) {
		if labenv.PortFree(port) {
			continue
		}
		found = append(found, finding{"bad", fmt.Sprintf("port %d is in use", port), "stop the other program or set " + portName(p, port)})
	}
	if len(found) == 0 {
		found = append(found, finding{"ok", "all ports are free", ""})
	}
	return found, nil
}

func portName(p labenv.Ports, port int) string {
	for _, e := range p.Env() {
		if name, ok := strings.CutSuffix(e, "="+strconv.Itoa(port)); ok {
			return name
		}
	}
	return "another port"
}

func memory() finding {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return finding{"ok", "memory: this system does not tell", ""}
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			if kib < 1<<20 {
				return finding{"missing", fmt.Sprintf("memory: %d MB available", kib>>10), "end some programs: a GB is comfortable"}
			}
			return finding{"ok", fmt.Sprintf("memory: %d MB available", kib>>10), ""}
		}
	}
	return finding{"ok", "memory: this system does not tell", ""}
}
