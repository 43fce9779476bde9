//go:build integration

package suite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
	"github.com/Bunty9/ferryman/loadtest/result"
)

const (
	budget   = 5 * time.Second       // of a failover, and the health interval, which bounds a recovery
	check    = 2 * time.Second       // the health timeout
	patience = 50 * time.Millisecond // within which a refusal is an answer
	// noise is how many buckets more may be slow on the broken route than on the others, which share with it
	// all that the machine does to them.
	noise = 0.03
	// weather is the same for two windows that are not at the same time, so that the machine may have been
	// busier in one of them. What really waits is slow in all buckets.
	weather = 0.25
)

// A fault hits echo-a. What it is for ferryman is in the comments.
var faults = []struct {
	name   string
	inject func(*testing.T, *rig)
	heal   func(*testing.T, *rig)
}{
	{"kill", // resets, then a name that is gone
		func(t *testing.T, r *rig) { r.echoes["a"].kill(t) }, func(t *testing.T, r *rig) { r.echoes["a"].restart(t) }},
	{"pause", // connections succeed, nothing answers
		func(t *testing.T, r *rig) { r.echoes["a"].pause(t) }, func(t *testing.T, r *rig) { r.echoes["a"].unpause(t) }},
	{"disconnect", // silence on live connections, without a reset
		func(t *testing.T, r *rig) { r.echoes["a"].disconnect(t, r.net) }, func(t *testing.T, r *rig) { r.echoes["a"].connect(t, r.net) }},
	{"errors", // quick answers, all of them 503, health included
		func(t *testing.T, r *rig) { r.echoes["a"].fault(t, `{"error_rate":1}`) }, func(t *testing.T, r *rig) { r.echoes["a"].fault(t, "") }},
	{"slow", // answers after the limit
		func(t *testing.T, r *rig) { r.echoes["a"].fault(t, `{"latency":"3s"}`) }, func(t *testing.T, r *rig) { r.echoes["a"].fault(t, "") }},
}

func TestFault_BecomesARefusalAndHealsWithinAHealthInterval(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			unlessStalled(t, func(t *testing.T) (*result.Report, func()) {
				r := newRig(t, asItIs)
				l := r.startLoad(t, 3*ratePerRoute)
				seen := &circuit{}
				l.mark(t, "fault")
				f.inject(t, r)
				l.mark(t, "injected")
				l.calm(t, 0, func() { seen.look(t, r) })
				spared := func() {}
				if f.name == "errors" || f.name == "slow" { // else nobody can ask it
					spared = r.nothingArrives(t)
				}
				l.mark(t, "heal")
				recovery := r.recover(t, f.heal, seen)
				l.mark(t, "recovered")
				l.flow(t, l.status(t).ElapsedS+2)
				opened, closed := r.transitions(t, "a", "open"), r.transitions(t, "a", "closed")
				report := l.stop(t)
				return report, func() {
					judgeFault(t, report, recovery)
					spared()
					require.Equal(t, []string{"closed", "open", "closed"}, seen.states)
					require.InDelta(t, 1, opened, 0)
					require.InDelta(t, 1, closed, 0)
				}
			})
		})
	}
}

func judgeFault(t *testing.T, report *result.Report, recovery time.Duration) {
	t.Helper()
	at := map[string]float64{}
	for _, name := range []string{"fault", "injected", "heal", "recovered"} {
		var err error
		at[name], err = markAt(report, name)
		require.NoError(t, err)
	}
	before := within(report, 0, until(report, at["fault"]), patience)
	require.Zero(t, before.bad+before.refused, "before any fault: %v", before)
	open := window{0, at["heal"]}
	open.from = at["fault"] + failover(report, 0, at["fault"]).Seconds()
	took := time.Duration((open.from - at["fault"]) * float64(time.Second)).Round(time.Millisecond)
	bad := report.Targets[0].Bad
	t.Logf("failover %v, of which the engine took %.2f s; %d bad requests; recovery %v", took, at["injected"]-at["fault"], bad,
		recovery.Round(time.Millisecond))
	require.Less(t, took, budget, "failover")
	require.LessOrEqual(t, bad, int64(ratePerRoute*budget.Seconds())+connections)
	require.Less(t, recovery, budget+check)
	judgeRefusals(t, report, open)
	judgeOthers(t, report, at["fault"])
	after := within(report, 0, window{at["recovered"], -1}, patience)
	require.Zero(t, after.refused+after.bad, "after the recovery: %v", after)
}

// judgeRefusals: while the circuit is open every answer is a refusal, and as quick as the others' answers.
func judgeRefusals(t *testing.T, report *result.Report, open window) {
	t.Helper()
	open.from += 0.02 // behind the bucket of the last bad one
	broken := within(report, 0, open, patience)
	require.Zero(t, broken.ok+broken.bad, "while open: %v", broken)
	require.Greater(t, broken.refused, 8*ratePerRoute)
	open.from += 1.1 // requests that were out when it opened hold the generator's connections for upstream_timeout_secs
	broken = within(report, 0, open, patience)
	other := within(report, 1, open, patience)
	require.LessOrEqual(t, broken.slow, other.slow+noise, "refusals take longer than answers: %v, %v", broken, other)
}

// judgeOthers: the other routes have no error, and are no slower than before the fault.
func judgeOthers(t *testing.T, report *result.Report, fault float64) {
	t.Helper()
	for i := 1; i < len(report.Targets); i++ {
		require.Zero(t, report.Targets[i].Errors(), "%s: %v", report.Targets[i].Name, report.Targets[i].Classes)
		before := within(report, i, until(report, fault), patience)
		after := within(report, i, window{fault, -1}, patience)
		require.LessOrEqual(t, after.slow, before.slow+weather, "%s: before %v, after %v", report.Targets[i].Name, before, after)
	}
}

// circuit is the sequence of states that was seen of echo-a's.
type circuit struct{ states []string }

func (c *circuit) look(t *testing.T, r *rig) {
	t.Helper()
	state := r.metrics(t).Circuit(upstream("a"))
	if n := len(c.states); n == 0 && state != "closed" {
		c.states = []string{"closed", state} // it was, before the fault
	} else if n == 0 || c.states[n-1] != state {
		c.states = append(c.states, state)
	}
}

func (r *rig) transitions(t *testing.T, name, to string) float64 {
	t.Helper()
	return r.metrics(t).Sum("ferryman_circuit_transitions_total", fmt.Sprintf("upstream=%q", upstream(name)), fmt.Sprintf("to=%q", to))
}

// nothingArrives: an open circuit spares its upstream everything but checks. It returns the judgement.
func (r *rig) nothingArrives(t *testing.T) (judge func()) {
	t.Helper()
	served := func() float64 { return r.echoes["a"].served(t) }
	asked := func() float64 {
		return r.metrics(t).Sum("ferryman_requests_total", `route="/svc-a"`, `status="503"`)
	}
	before, refused := served(), asked()
	eventually(t, 20*time.Second, "a hundred refusals", func(context.Context) error {
		if n := asked() - refused; n < 100 {
			return fmt.Errorf("%.0f so far", n)
		}
		return nil
	})
	after := served()
	return func() { require.InDelta(t, before, after, 0, "requests reached an upstream whose circuit is open") }
}

// recover heals and measures from the upstream's own first answer to its first through ferryman.
func (r *rig) recover(t *testing.T, heal func(*testing.T, *rig), seen *circuit) time.Duration {
	t.Helper()
	heal(t, r)
	eventually(t, 30*time.Second, "echo-a by itself", func(ctx context.Context) error {
		base, err := r.echoes["a"].at(ctx, "8000/tcp")
		if err != nil {
			return err
		}
		return labenv.Answers(ctx, base+"/health")
	})
	begun := time.Now()
	eventually(t, 30*time.Second, "echo-a through ferryman", func(ctx context.Context) error {
		seen.look(t, r)
		return labenv.Answers(ctx, r.url(t, "/svc-a/echo"))
	})
	took := time.Since(begun)
	eventually(t, 10*time.Second, "a closed circuit", func(context.Context) error {
		seen.look(t, r)
		if seen.states[len(seen.states)-1] != "closed" {
			return errors.New("it is " + seen.states[len(seen.states)-1])
		}
		return nil
	})
	return took
}
