//go:build unix

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// latency runs direct, proxied, direct again, and judges the proxied one. The direct ones show whether the
// machine can keep the rate at all; where it cannot, the rate is halved.
func (b *bench) latency(ctx context.Context) error {
	b.l.say("%s", cores())
	rate, why, err := b.rate(ctx)
	if err != nil {
		return err
	}
	d := 10 * time.Second
	if b.smoke {
		d = 3 * time.Second
	}
	for {
		b.l.say("%d requests/s by %s: %s", rate, b.g.name, why)
		before, proxied, after, err := b.sandwich(ctx, rate, d)
		if err != nil {
			return err
		}
		unfit := unfitness(before, proxied, after)
		if unfit == "" {
			b.judgeLatency(rate, proxied, min(before.p50, after.p50))
			return nil
		}
		if rate/2 < leastRate {
			b.add("latency through the proxy", proxied.String(), "-", invalid)
			b.l.say("nothing can be said of latencies: %s, even at %d/s", unfit, rate)
			return nil
		}
		rate /= 2
		why = "half of what was tried before, as " + unfit
	}
}

// rate is asked for in RATE, or a quarter of what the proxy can do here.
func (b *bench) rate(ctx context.Context) (rate int, why string, err error) {
	if text := b.l.env("RATE"); text != "" {
		rate, err = strconv.Atoi(text)
		if err != nil || rate < leastRate {
			return 0, "", fmt.Errorf("RATE is %q: it must be a number, at least %d", text, leastRate)
		}
		return rate, "RATE asks for it", nil
	}
	r, err := b.loadtest.report(ctx, "--closed", "-c", "50", "-d", "2s", "--warmup", "500ms", "--max-errors", "any", b.proxied+"/svc-a/echo")
	if err != nil {
		return 0, "", err
	}
	quarter := int(r.CompletedS / 4)
	if quarter >= usualRate {
		return usualRate, fmt.Sprintf("the usual rate; in a closed loop the proxy does %.0f/s here", r.CompletedS), nil
	}
	rate = max(leastRate, quarter/100*100)
	return rate, fmt.Sprintf("a quarter of the %.0f/s that the proxy does here in a closed loop", r.CompletedS), nil
}

func (b *bench) sandwich(ctx context.Context, rate int, d time.Duration) (before, proxied, after sample, err error) {
	for _, run := range []struct {
		name, url string
		into      *sample
	}{{"direct", b.direct + "/echo", &before}, {"proxied", b.proxied + "/svc-a/echo", &proxied}, {"direct", b.direct + "/echo", &after}} {
		if *run.into, err = b.g.at(ctx, rate, d, run.url); err != nil {
			return before, proxied, after, err
		}
		b.l.say("  %-8s %v", run.name, *run.into)
	}
	return before, proxied, after, nil
}

// unfitness says why the machine cannot keep a rate; "" if it can.
func unfitness(before, proxied, after sample) string {
	for _, s := range []sample{before, proxied, after} {
		if len(s.invalid) > 0 {
			return strings.Join(s.invalid, "; ")
		}
	}
	for _, s := range []sample{before, after} {
		if s.p50 >= budgetP50 || s.p99 >= budgetP99 || s.p999 >= budgetP999 {
			return "without the proxy the budgets are missed too"
		}
	}
	return ""
}

func (b *bench) judgeLatency(rate int, s sample, direct time.Duration) {
	at := fmt.Sprintf(" at %d/s", rate)
	for _, x := range []struct {
		name             string
		measured, budget time.Duration
	}{{"p50", s.p50, budgetP50}, {"p99", s.p99, budgetP99}, {"p99.9", s.p999, budgetP999}} {
		b.add("latency "+x.name+at, x.measured.String(), "< "+x.budget.String(), judge(x.measured < x.budget))
	}
	b.add("latency p50 that the proxy adds"+at, (s.p50 - direct).String(), "-", pass)
	b.add("errors"+at, strconv.FormatInt(s.errors, 10), "0", judge(s.errors == 0))
}
