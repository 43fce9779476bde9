//go:build integration

package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/Bunty9/ferryman/loadtest/labenv"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// load is a generator on the rig's network: only control calls cross a published port.
type load struct {
	node
	control string
	report  *result.Report // nil before stop
}

// status is what the generator's GET /status tells.
type status struct {
	ElapsedS float64 `json:"elapsed_s"`
	Targets  []struct {
		Bad      int64            `json:"bad"`
		LastBadS *float64         `json:"last_bad_s"`
		Classes  map[string]int64 `json:"classes"`
	} `json:"targets"`
}

// The constant load of the fault tests.
const (
	ratePerRoute = 300
	connections  = 1200 // over three routes: one that hangs for a second holds as many as its rate
)

// startLoad begins with a constant rate on all three routes, or on paths if there are any, and returns when
// three seconds have passed.
func (r *rig) startLoad(t *testing.T, rate int, paths ...string) *load {
	t.Helper()
	l := r.startLoadAtOnce(t, rate, paths...)
	l.flow(t, 3)
	return l
}

// startLoadAtOnce returns as soon as the generator runs.
func (r *rig) startLoadAtOnce(t *testing.T, rate int, paths ...string) *load {
	t.Helper()
	if len(paths) == 0 {
		paths = []string{"/svc-a/echo", "/svc-b/echo", "/svc-c/echo"}
	}
	args := []string{
		"-c", fmt.Sprint(connections), "-R", fmt.Sprint(rate), "-d", "3m", "--mode", "pool", "--timeout", "5s", "--quiet", "--json", "-",
		// What failed is bad here. Whether refusals are quick is judged against the other routes of the same run, as a
		// busy machine is nobody's fault.
		"--max-refusal", "1s", "--max-errors", "any", "--control", ":9200",
	}
	for _, path := range paths {
		args = append(args, "http://ferryman:8080"+path)
	}
	l := &load{node: r.start(t, "loadtest", images.Loadtest, []string{"9200/tcp"}, wait.ForHTTP("/healthz").WithPort("9200/tcp"), args...)}
	var err error
	l.control, err = l.at(t.Context(), "9200/tcp")
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			l.show(t)
		}
	})
	return l
}

// flow waits until so many seconds have been measured.
func (l *load) flow(t *testing.T, seconds float64) {
	t.Helper()
	eventually(t, time.Minute, "load", func(context.Context) error {
		if s := l.status(t); s.ElapsedS < seconds {
			return fmt.Errorf("%.1f s so far", s.ElapsedS)
		}
		return nil
	})
}

func (l *load) status(t *testing.T) (s status) {
	t.Helper()
	code, text, err := labenv.Ask(t.Context(), "GET", l.control+"/status", "")
	require.NoError(t, err)
	require.Equal(t, 200, code, text)
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return s
}

func (l *load) mark(t *testing.T, name string) {
	t.Helper()
	code, text, err := labenv.Ask(t.Context(), "POST", l.control+"/mark/"+name, "")
	require.NoError(t, err)
	require.Equal(t, 200, code, text)
}

// calm waits until a target had bad requests, where some are expected, and then none for ten seconds.
func (l *load) calm(t *testing.T, target int, each func()) {
	t.Helper()
	eventually(t, time.Minute, "ten seconds without a bad request", func(context.Context) error {
		each()
		s := l.status(t)
		last := s.Targets[target].LastBadS
		switch {
		case last == nil:
			return errors.New("none was bad yet")
		case s.ElapsedS-*last < 10:
			return fmt.Errorf("the last one was due %.1f s ago; so far %v", s.ElapsedS-*last, s.Targets[target].Classes)
		}
		return nil
	})
}

// stop ends the load and reads its report.
func (l *load) stop(t *testing.T) *result.Report {
	t.Helper()
	code, text, err := labenv.Ask(t.Context(), "POST", l.control+"/stop", "")
	require.NoError(t, err)
	require.Equal(t, 200, code, text)
	eventually(t, 30*time.Second, "the generator's report", func(ctx context.Context) error {
		stdout, _, err := l.outputs(ctx, "all")
		if err != nil {
			return err
		}
		r := &result.Report{}
		if err := json.Unmarshal([]byte(stdout), r); err != nil {
			return err
		}
		l.report = r
		return nil
	})
	return l.report
}

// stall is how long the generator may have been late. A machine that stands still for longer stops ferryman
// and its upstreams as well, and time-outs say nothing any more.
const stall = 300 * time.Millisecond

// unlessStalled plays a scenario and judges it. What happened while the machine stood still is not judged but
// played again.
func unlessStalled(t *testing.T, scenario func(*testing.T) (report *result.Report, judge func())) {
	t.Helper()
	for n := range 3 {
		judged := false
		t.Run(fmt.Sprint("try ", n+1), func(t *testing.T) {
			report, judge := scenario(t)
			if lag := time.Duration(report.SendLag.MaxUS) * time.Microsecond; lag > stall {
				t.Logf("the machine stood still for %v: once more", lag)
				return
			}
			judged = true
			judge()
		})
		if judged || t.Failed() {
			return
		}
	}
	require.Fail(t, "the machine stood still in each of three runs: it is too busy for this suite")
}

// show prints the run in steps of half a second.
func (l *load) show(t *testing.T) {
	r := l.report
	if r == nil {
		t.Logf("the load was not stopped, so it has no timeline: %s", l.printed(context.Background(), "20"))
		return
	}
	t.Logf("marks: %v", r.Marks)
	for i, target := range r.Targets {
		t.Logf("%s: %v, statuses %v", target.Name, target.Classes, target.Statuses)
		for at := 0.0; at < r.ElapsedS; at += 0.5 {
			t.Logf("  %5.1f s  %v", at, within(r, i, window{at, at + 0.5}, patience))
		}
	}
}
