//go:build integration

package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// Ways in which a file in the mounted directory is saved.
var saves = []struct {
	name string
	save func(t *testing.T, dir, text string)
}{
	{"in place", func(t *testing.T, dir, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ferryman.toml"), []byte(text), 0o644))
	}},
	{"by rename, as editors do", func(t *testing.T, dir, text string) {
		name := filepath.Join(dir, "ferryman.toml")
		require.NoError(t, os.WriteFile(name+"~", []byte(text), 0o644))
		require.NoError(t, os.Rename(name+"~", name))
	}},
	{"by symlink, as Kubernetes does", swapLink},
	{"by symlink again", swapLink},
	{"deleted, then there again", func(t *testing.T, dir, text string) {
		name := filepath.Join(dir, "ferryman.toml")
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}},
}

// swapLink: ferryman.toml -> ..data/ferryman.toml, and ..data is a link to a folder that is replaced whole.
func swapLink(t *testing.T, dir, text string) {
	version, err := os.MkdirTemp(dir, "..version-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(version, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(version, "ferryman.toml"), []byte(text), 0o644))
	for link, to := range map[string]string{"..data": filepath.Base(version), "ferryman.toml": "..data/ferryman.toml"} {
		name := filepath.Join(dir, link)
		if old, err := os.Readlink(name); err == nil && old == to {
			continue
		}
		require.NoError(t, os.Symlink(to, name+".new"))
		require.NoError(t, os.Rename(name+".new", name))
	}
}

func TestReload_NoWayOfSavingCostsARequest(t *testing.T) {
	t.Parallel()
	unlessStalled(t, func(t *testing.T) (*result.Report, func()) {
		r := newRig(t, asItIs)
		l := r.startLoad(t, 3*ratePerRoute)
		r.saveInEachWay(t)
		r.saveNonsense(t)
		report := l.stop(t)
		return report, func() {
			require.Zero(t, report.Total.Errors(), "%v", report.Total.Classes)
			require.Zero(t, report.Connections.Unsolicited)
		}
	})
}

func (r *rig) reloads(t *testing.T, outcome string) float64 {
	t.Helper()
	return r.metrics(t).Sum("ferryman_config_reloads_total", fmt.Sprintf("result=%q", outcome))
}

// saveInEachWay adds a route each time, which must answer soon.
func (r *rig) saveInEachWay(t *testing.T) {
	t.Helper()
	original, err := os.ReadFile(filepath.Join(r.dir, "ferryman.toml"))
	require.NoError(t, err)
	for i, s := range saves {
		before := r.reloads(t, "success")
		path := fmt.Sprintf("/saved-%d", i)
		s.save(t, r.dir, fmt.Sprintf("%s\n[[routes]]\nprefix = %q\nupstream = \"http://echo-c:8000\"\n", original, path))
		eventually(t, 10*time.Second, "the route that was saved "+s.name, func(ctx context.Context) error {
			return labenv.Answers(ctx, r.url(t, path+"/echo"))
		})
		require.Greater(t, r.reloads(t, "success"), before, s.name)
	}
}

// saveNonsense must be noticed and change nothing.
func (r *rig) saveNonsense(t *testing.T) {
	t.Helper()
	before := r.reloads(t, "failure")
	swapLink(t, r.dir, "upstream_timeout_secs = \"soon\"\n")
	eventually(t, 10*time.Second, "a configuration that is refused", func(context.Context) error {
		if r.reloads(t, "failure") == before {
			return fmt.Errorf("%.0f failures", before)
		}
		return nil
	})
	require.NoError(t, labenv.Answers(t.Context(), r.url(t, fmt.Sprintf("/saved-%d/echo", len(saves)-1))), "the old table stays")
}

func TestDrain_EveryRequestThatWasOutIsAnswered(t *testing.T) {
	t.Parallel()
	unlessStalled(t, func(t *testing.T) (*result.Report, func()) {
		r := newRig(t, asItIs)
		// A second for each answer, so that some 150 are out at any moment.
		l := r.startLoad(t, 150, "/svc-a/stream?chunks=11&every=100ms")
		l.mark(t, "term")
		_, err := engine.ContainerKill(t.Context(), r.proxy.GetContainerID(), client.ContainerKillOptions{Signal: "TERM"})
		require.NoError(t, err)
		eventually(t, 30*time.Second, "ferryman's end", func(ctx context.Context) error {
			c, err := engine.ContainerInspect(ctx, r.proxy.GetContainerID(), client.ContainerInspectOptions{})
			if err != nil {
				return err
			}
			if c.Container.State.Running {
				return fmt.Errorf("it is %s", c.Container.State.Status)
			}
			require.Zero(t, c.Container.State.ExitCode)
			return nil
		})
		report := l.stop(t)
		return report, func() { judgeDrain(t, report) }
	})
}

func judgeDrain(t *testing.T, report *result.Report) {
	t.Helper()
	term, err := markAt(report, "term")
	require.NoError(t, err)
	before := within(report, 0, until(report, term), patience)
	require.Zero(t, before.bad+before.refused, "%v", before)
	require.Greater(t, before.ok, 3*100)
	for _, class := range []string{"truncated", "malformed", "wrong_body", "status"} {
		require.Zero(t, report.Total.Classes[class], "%v: a goodbye is never half an answer", report.Total.Classes)
	}
}
