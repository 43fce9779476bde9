//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
)

// sample is what a run at a fixed rate showed.
type sample struct {
	p50, p99, p999 time.Duration
	errors         int64
	invalid        []string // why it says nothing about the target
}

func (s sample) String() string {
	return fmt.Sprintf("p50 %v  p99 %v  p99.9 %v  errors %d", s.p50, s.p99, s.p999, s.errors)
}

// generator makes the command of a load generator.
type generator struct {
	name    string
	command func(ctx context.Context, args ...string) *exec.Cmd
}

// finish waits for a loadtest that was told to print JSON. A budget that was missed is no error here.
func finish(cmd *exec.Cmd, stdout, stderr *bytes.Buffer) (*result.Report, error) {
	err := cmd.Wait()
	r := &result.Report{}
	if json.Unmarshal(stdout.Bytes(), r) != nil || r.Schema != result.Schema {
		return nil, errors.Join(err, fmt.Errorf("loadtest printed no report: %s", lastLine(stderr.String())))
	}
	return r, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// begin starts a loadtest with a report to come on stdout.
func (g generator) begin(ctx context.Context, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer, err error) {
	cmd = g.command(ctx, append([]string{"--quiet", "--json", "-"}, args...)...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr, cmd.Start()
}

// report runs a loadtest to its end.
func (g generator) report(ctx context.Context, args ...string) (*result.Report, error) {
	cmd, stdout, stderr, err := g.begin(ctx, args...)
	if err != nil {
		return nil, err
	}
	return finish(cmd, stdout, stderr)
}

// at measures url at a fixed rate.
func (g generator) at(ctx context.Context, rate int, d time.Duration, url string) (sample, error) {
	if g.name == "wrk2" {
		return g.wrk2(ctx, rate, d, url)
	}
	r, err := g.report(ctx, "-c", "50", "-R", strconv.Itoa(rate), "-d", d.String(), "--warmup", "1s", "--mode", "pool", url)
	if err != nil {
		return sample{}, err
	}
	s := sample{errors: r.Total.Errors()}
	if p := r.Total.Response; p != nil {
		us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
		s.p50, s.p99, s.p999 = us(p.P50US), us(p.P99US), us(p.P999US)
	}
	if r.Verdict.Outcome == result.Invalid {
		s.invalid = r.Verdict.Reasons
	}
	return s, nil
}

var (
	wrk2Line   = regexp.MustCompile(`(?m)^\s*(50\.000|99\.000|99\.900)%\s+([0-9.]+(?:us|ms|s|m))\s*$`)
	wrk2Errors = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)|Non-2xx or 3xx responses: (\d+)`)
)

func (g generator) wrk2(ctx context.Context, rate int, d time.Duration, url string) (sample, error) {
	args := []string{"-t", "1", "-c", "50", "-R", strconv.Itoa(rate), "-d", strconv.Itoa(int(d.Seconds())) + "s", "--latency", url}
	out, err := g.command(ctx, args...).CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("wrk2: %w: %s", err, lastLine(string(out)))
	}
	return parseWrk2(string(out))
}

// parseWrk2 reads the percentile table of wrk2's --latency.
func parseWrk2(text string) (sample, error) {
	var s sample
	found := 0
	for _, m := range wrk2Line.FindAllStringSubmatch(text, -1) {
		d, err := time.ParseDuration(m[2])
		if err != nil {
			return s, fmt.Errorf("wrk2 printed the time %q", m[2])
		}
		switch m[1] {
		case "50.000":
			s.p50 = d
		case "99.000":
			s.p99 = d
		default:
			s.p999 = d
		}
		found++
	}
	if found < 3 {
		return s, errors.New("wrk2 printed no percentiles: it is wrk2 that is needed, not wrk, and it must know --latency")
	}
	for _, m := range wrk2Errors.FindAllStringSubmatch(text, -1) {
		for _, n := range m[1:] {
			v, _ := strconv.ParseInt(n, 10, 64) // empty where the other half matched
			s.errors += v
		}
	}
	return s, nil
}
