//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// status is one table.
func (l *lab) status(ctx context.Context, _ []string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	page, err := labenv.ReadPage(ctx, s.Metrics+"/metrics")
	if err != nil {
		l.say("ferryman does not answer: %v", err)
	}
	w := tabwriter.NewWriter(l.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROUTE\tUPSTREAM\tCONDITION\tCIRCUIT\tOPENED\t200\t502-504\tIN USE")
	for _, e := range s.Echoes {
		route, up := fmt.Sprintf(`route="/svc-%s"`, e.Name), fmt.Sprintf("upstream=%q", e.Upstream)
		var bad float64
		for _, code := range []string{"502", "503", "504"} {
			bad += page.Sum("ferryman_requests_total", route, `status="`+code+`"`)
		}
		fmt.Fprintf(w, "/svc-%s\t%s\t%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\n", e.Name, e.Upstream, s.Condition(ctx, e), page.Circuit(e.Upstream),
			page.Sum("ferryman_circuit_transitions_total", up, `to="open"`), page.Sum("ferryman_requests_total", route, `status="200"`),
			bad, page.Sum("ferryman_upstream_connections", up, `state="in_use"`))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	l.say("")
	l.printURLs(s)
	return nil
}

// watch prints changes until it is interrupted.
func (l *lab) watch(ctx context.Context, _ []string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	l.say("watching the lab (%s); Ctrl-C ends", s.Mode)
	seen := map[string]string{}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if fresh, err := labenv.Load(l.root); err == nil {
			s = fresh // a healed process has another id
		}
		for _, c := range changes(seen, l.observe(ctx, s)) {
			l.say("%s  %s", time.Now().Format("15:04:05.000"), c)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// observe is all that watch reports a change of.
func (l *lab) observe(ctx context.Context, s *labenv.State) map[string]string {
	now := map[string]string{}
	page, err := labenv.ReadPage(ctx, s.Metrics+"/metrics")
	if err != nil {
		now["ferryman"] = "no answer"
	} else {
		now["ferryman"] = "up"
		for _, result := range []string{"success", "failure"} {
			now["reloads, "+result] = fmt.Sprint(page.Sum("ferryman_config_reloads_total", `result="`+result+`"`))
		}
	}
	for _, e := range s.Echoes {
		now["echo-"+e.Name] = s.Condition(ctx, e)
		if err != nil {
			continue
		}
		now["circuit of echo-"+e.Name] = page.Circuit(e.Upstream)
		for _, to := range []string{"open", "half_open", "closed"} {
			n := page.Sum("ferryman_circuit_transitions_total", fmt.Sprintf("upstream=%q", e.Upstream), `to="`+to+`"`)
			now["transitions of echo-"+e.Name+" to "+to] = fmt.Sprint(n)
		}
	}
	return now
}

// changes says what differs between two observations and remembers the new one. What was not seen before
// is no change, except that the first look shows everything that is not well.
func changes(seen, now map[string]string) (said []string) {
	for what, value := range now {
		old, known := seen[what]
		seen[what] = value
		switch {
		case known && old != value:
			said = append(said, fmt.Sprintf("%s: %s -> %s", what, old, value))
		case !known && slices.Contains([]string{"no answer", "killed", "open", "half_open"}, value):
			said = append(said, fmt.Sprintf("%s: %s", what, value))
		}
	}
	slices.Sort(said)
	return said
}

// logs shows the end of what the programs print.
func (l *lab) logs(ctx context.Context, args []string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	follow := l.env("FOLLOW") != ""
	var cmd *exec.Cmd
	if s.Compose != nil {
		all := []string{"logs", "--tail", "50"}
		if follow {
			all = append(all, "--follow")
		}
		cmd = s.Compose.Command(ctx, append(all, args...)...)
	} else {
		all := []string{"-n", "50"}
		if follow {
			all = append(all, "-f")
		}
		for _, p := range s.Processes {
			if len(args) == 0 || args[0] == p.Name {
				all = append(all, p.Log)
			}
		}
		cmd = exec.CommandContext(ctx, "tail", all...)
	}
	cmd.Stdout, cmd.Stderr = l.stdout, l.stderr
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// clean removes what the lab leaves behind: outputs, containers, networks, volumes and images by label.
func (l *lab) clean(ctx context.Context, args []string) error {
	if err := l.down(ctx, args); err != nil {
		l.say("%v", err)
	}
	for _, x := range []struct{ list, remove []string }{
		{[]string{"ps", "--all", "--quiet"}, []string{"rm", "--force", "--volumes"}},
		{[]string{"network", "ls", "--quiet"}, []string{"network", "rm"}},
		{[]string{"volume", "ls", "--quiet"}, []string{"volume", "rm"}},
		{[]string{"image", "ls", "--quiet"}, []string{"image", "rm", "--force"}},
	} {
		n, err := labenv.Sweep(ctx, x.list, x.remove)
		if err != nil {
			l.say("Docker: %v", err)
			break
		}
		if n > 0 {
			l.say("docker %s: %d", x.remove[0]+" "+x.remove[1], n)
		}
	}
	for _, name := range []string{labenv.Dir(l.root), filepath.Join(l.root, "bin")} {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	l.say("clean")
	return nil
}
