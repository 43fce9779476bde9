//go:build integration

package suite

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
	"github.com/Bunty9/ferryman/loadtest/result"
)

func TestCircuit_SendsOneProbePerCooldownUntilItIsHealed(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(text string) string { return "default_cooldown_secs = 2\n" + text })
	r.echoes["a"].fault(t, `{"error_rate":1,"health":"fail"}`)
	l := r.startLoadAtOnce(t, 150, "/svc-a/echo")
	const probes = 3
	eventually(t, time.Minute, "three probes", func(context.Context) error {
		if n := r.transitions(t, "a", "half_open"); n < probes {
			return fmt.Errorf("%.0f so far", n)
		}
		return nil
	})
	// Between two looks that find the same number of probes the upstream got what those probes are, plus what
	// opened the circuit.
	var half, served float64
	eventually(t, 20*time.Second, "a look between two probes", func(context.Context) error {
		half = r.transitions(t, "a", "half_open")
		served = r.echoes["a"].served(t)
		if again := r.transitions(t, "a", "half_open"); again != half || r.metrics(t).Circuit(upstream("a")) != "open" {
			return fmt.Errorf("a probe is out: %v, %v", half, again)
		}
		return nil
	})
	opening := served - half
	require.GreaterOrEqual(t, opening, 3.0-1, "the threshold, of which one may have been a health check")
	require.LessOrEqual(t, opening, 3.0+connections, "what was out when it opened")
	require.InDelta(t, half+1, r.transitions(t, "a", "open"), 0, "each probe failed and opened it again")
	require.Zero(t, r.transitions(t, "a", "closed"))

	before := served
	eventually(t, 20*time.Second, "one probe more", func(context.Context) error {
		if r.transitions(t, "a", "half_open") == half || r.metrics(t).Circuit(upstream("a")) != "open" {
			return fmt.Errorf("still %.0f", half)
		}
		return nil
	})
	require.InDelta(t, r.transitions(t, "a", "half_open")-half, r.echoes["a"].served(t)-before, 0, "exactly one request for each probe")

	r.echoes["a"].fault(t, "")
	eventually(t, 10*time.Second, "the circuit closes", func(context.Context) error {
		if r.metrics(t).Circuit(upstream("a")) != "closed" {
			return fmt.Errorf("it is %s", r.metrics(t).Circuit(upstream("a")))
		}
		return nil
	})
	l.stop(t)
}

func TestRestart_UnderANewAddressIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, asItIs)
	b := r.echoes["b"]
	old := b.address(t, r.net)
	for i := 0; ; i++ { // a filler takes the address that is free
		b.kill(t)
		r.echo(t, fmt.Sprintf("filler-%d", i))
		b.restart(t)
		if b.address(t, r.net) != old {
			break
		}
		require.Less(t, i, 5, "the engine gives the same address again and again")
	}
	eventually(t, budget+check+10*time.Second, "echo-b under its new address", func(ctx context.Context) error {
		code, text, err := labenv.Ask(ctx, http.MethodGet, r.url(t, "/svc-b/who"), "")
		if err == nil && (code != 200 || !strings.Contains(text, `"instance":"echo-b"`)) {
			err = fmt.Errorf("%d: %s", code, text)
		}
		return err
	})
}

func TestAllDown_EveryRouteRefusesAtFullRate(t *testing.T) {
	t.Parallel()
	unlessStalled(t, func(t *testing.T) (*result.Report, func()) {
		r := newRig(t, asItIs)
		l := r.startLoad(t, 3*ratePerRoute)
		l.mark(t, "fault")
		for _, name := range labenv.Upstreams {
			r.echoes[name].pause(t)
		}
		for i := range labenv.Upstreams {
			l.calm(t, i, func() {})
		}
		l.mark(t, "down")
		l.flow(t, l.status(t).ElapsedS+3)
		l.mark(t, "enough")
		report := l.stop(t)
		return report, func() { judgeAllDown(t, report) }
	})
}

func judgeAllDown(t *testing.T, report *result.Report) {
	t.Helper()
	fault, err := markAt(report, "fault")
	require.NoError(t, err)
	down, err := markAt(report, "down")
	require.NoError(t, err)
	enough, err := markAt(report, "enough")
	require.NoError(t, err)
	for i := range labenv.Upstreams {
		c := within(report, i, window{down, enough}, patience)
		require.Zero(t, c.ok+c.bad, "target %d: %v", i, c)
		require.Greater(t, c.refused, 2*ratePerRoute)
		before := within(report, i, until(report, fault), patience)
		require.LessOrEqual(t, c.slow, before.slow+weather, "target %d: refusals take over %v: before %v, now %v", i, patience, before, c)
	}
}
