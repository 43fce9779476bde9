package main

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/report"
)

func TestTurn_GivesABBAAndSwappedBAAB(t *testing.T) {
	order := func(swap bool) (text string) {
		for pair := range 4 {
			for _, i := range turn(pair, swap) {
				text += string(rune('A' + i))
			}
		}
		return text
	}
	require.Equal(t, "ABBAABBA", order(false))
	require.Equal(t, "BAABBAAB", order(true))
}

func TestRound_LeavesTwoDigits(t *testing.T) {
	for v, want := range map[float64]float64{31234: 31000, 4499: 4500, 99.6: 100, 7.4: 7, 0.2: 1, 156: 160} {
		require.InDelta(t, want, round(v), 1e-9)
	}
}

func TestRefusal_WrongAnswersNeverCountAndAFewUnansweredDo(t *testing.T) {
	outcome := func(wrong map[string]int64) load.Outcome {
		return load.Outcome{Requests: 1000, Right: 900, Wrong: wrong}
	}
	require.Empty(t, refusal(outcome(nil)))
	require.Empty(t, refusal(outcome(map[string]int64{"reset": 9})))
	require.Equal(t, "2% of the requests had no answer (reset, timeout)", refusal(outcome(map[string]int64{"timeout": 10, "reset": 9})))
	require.Equal(t, "1 answers were wrong (wrong_body)", refusal(outcome(map[string]int64{"wrong_body": 1})))
	require.Equal(t, "1 answers were wrong (status)", refusal(outcome(map[string]int64{"status": 1, "timeout": 500})))
	require.Equal(t, "no right answer", refusal(load.Outcome{Requests: 5}))
	late := outcome(nil)
	late.Latency = &load.Latency{P50: 60_000}
	require.Contains(t, refusal(late), "cannot keep the rate")
	late.Latency.P50 = 40_000
	require.Empty(t, refusal(late))
}

func TestLength_GrowsUntilSomeProcessorTimeFits(t *testing.T) {
	f := &field{bench: &bench{o: options{block: time.Second}}, most: 40_000, cost: 20e-6}
	require.Equal(t, time.Second, f.length(0))      // 0.8 processors
	require.Equal(t, 5*time.Second, f.length(2000)) // 0.04
	require.Equal(t, 10*time.Second, f.length(100)) // there is an end
	f.o.quick = true
	require.Equal(t, time.Second, f.length(100))
}

func TestRates_AreSharesOfWhatTheReferenceCanDo(t *testing.T) {
	f := &field{most: 41_300}
	require.Zero(t, f.rate(saturated))
	require.InDelta(t, 25_000, f.rate(heavy), 1e-9)
	require.InDelta(t, 6200, f.rate(light), 1e-9)
}

func TestWorkloads_AreThoseOfTheIssueAndNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range workloads() {
		require.False(t, seen[w.name], w.name)
		seen[w.name] = true
		require.Positive(t, w.fixed)
		require.Positive(t, w.closed)
		require.Equal(t, w.http2, w.streams > 1)
	}
	for _, name := range []string{"small", "16k", "1m", "post", "close", "tls", "h2"} {
		require.True(t, seen[name], name)
	}
}

func TestOptions_QuickAndGateHaveDefaultsOfTheirOwn(t *testing.T) {
	o, err := parseOptions(false, nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 10, o.pairs)
	require.Equal(t, names(), o.workloads)
	o, err = parseOptions(false, []string{"--quick"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 2, o.pairs)
	require.Equal(t, []string{"small"}, o.workloads)
	o, err = parseOptions(false, []string{"--quick", "--pairs", "6", "--workloads", "tls, h2", "--contenders", "caddy"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 6, o.pairs)
	require.Equal(t, []string{"tls", "h2"}, o.workloads)
	require.Equal(t, []string{"caddy", "ferryman"}, o.contenders, "nobody is compared without ferryman")
	o, err = parseOptions(true, nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{saturated}, o.loads)
	require.Contains(t, o.contenders, "nginx-tuned")
}

func TestRun_AUsageErrorExits2AndSaysWhatIsThere(t *testing.T) {
	for _, args := range [][]string{
		{"--pairs", "3"}, {"--pairs", "0"}, {"--block", "1ms"}, {"--workloads", "huge"}, {"--loads", "medium"},
		{"--contenders", "traefik"}, {"--no-such-flag"}, {"extra"}, {"gate", "--pairs", "5"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, nil, io.Discard, &stderr), args)
		require.NotEmpty(t, stderr.String(), args)
	}
	require.Equal(t, 0, run(t.Context(), []string{"-h"}, nil, io.Discard, io.Discard))
}

func TestRun_AsGeneratorEndsWithItsInput(t *testing.T) {
	require.Equal(t, 0, run(context.Background(), []string{load.Command}, &bytes.Buffer{}, io.Discard, io.Discard))
	var stderr bytes.Buffer
	require.Equal(t, 1, run(context.Background(), []string{load.Command}, bytes.NewBufferString("nonsense"), io.Discard, &stderr))
	require.Contains(t, stderr.String(), "read a message")
}

func TestPublish_WritesAllThreeForms(t *testing.T) {
	dir := t.TempDir() + "/new"
	var stdout bytes.Buffer
	r := &report.Run{Reference: "ferryman", Sections: []report.Section{{Title: "GET"}}}
	require.NoError(t, publish(r, dir, &stdout, io.Discard))
	require.Contains(t, stdout.String(), "### GET")
	for _, name := range []string{"report.md", "report.json", "report.svg"} {
		require.FileExists(t, dir+"/"+name)
	}
	require.NoError(t, publish(r, "", io.Discard, io.Discard))
}
