package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/pacer"
	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

// options are the command line, understood.
type options struct {
	plan        engine.Plan
	budgets     result.Budgets
	limits      result.Limits
	spectrum    result.Spectrum
	outputs     outputs
	metricsBind string
	control     string
	quiet       bool
}

// raw holds what has to be looked at together.
type raw struct {
	headers    []string
	method     string
	body       string
	expectBody string
	status     int
	h2         bool
	insecure   bool
	latency    bool
}

func parse(args []string) (options, error) {
	o, r := options{}, raw{}
	o.plan.Duration = 10 * time.Second
	flags := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned; -h prints the usage
	o.planFlags(flags)
	r.requestFlags(flags)
	o.judgeFlags(flags)
	o.outputFlags(flags)
	var urls []string
	for rest := apart(args); len(rest) > 0; { // flags may also come after a URL, as in wrk2
		if err := flags.Parse(rest); err != nil {
			return options{}, err
		}
		if rest = flags.Args(); len(rest) > 0 {
			urls, rest = append(urls, rest[0]), rest[1:]
		}
	}
	return o.finish(r, urls)
}

// apart splits what wrk2's users write in one, such as -c100.
func apart(args []string) []string {
	var list []string
	for _, arg := range args {
		if len(arg) > 2 && arg[0] == '-' && strings.IndexByte("ctRd", arg[1]) >= 0 && arg[2] >= '0' && arg[2] <= '9' {
			list = append(list, arg[:2], arg[2:])
			continue
		}
		list = append(list, arg)
	}
	return list
}

func (o *options) planFlags(flags *flag.FlagSet) {
	p := &o.plan
	for _, name := range []string{"c", "connections"} {
		flags.Func(name, "", number(func(v float64) { p.Connections = int(v) }))
	}
	for _, name := range []string{"t", "threads"} {
		flags.Func(name, "", number(func(v float64) { p.Loops = int(v) }))
	}
	for _, name := range []string{"R", "rate"} {
		flags.Func(name, "", number(func(v float64) { p.Rate = v }))
	}
	for _, name := range []string{"d", "duration"} {
		flags.Func(name, "", duration(&p.Duration))
	}
	flags.Func("warmup", "", duration(&p.Warmup))
	flags.Func("timeout", "", duration(&p.Timeout))
	flags.Func("max-refusal", "", duration(&p.RefusalLimit))
	flags.Func("mode", "", func(s string) error {
		switch s {
		case pacer.Pinned.String():
			p.Mode = pacer.Pinned
		case pacer.Pool.String():
			p.Mode = pacer.Pool
		default:
			return errors.New("it is pinned or pool")
		}
		return nil
	})
	flags.BoolVar(&p.Capacity, "closed", false, "")
	flags.BoolVar(&p.NoKeepAlive, "no-keepalive", false, "")
	flags.IntVar(&p.Streams, "streams", 0, "")
	flags.StringVar(&p.Executor, "engine", "", "")
	flags.BoolVar(&p.AllowRemote, "allow-remote", false, "")
	for _, name := range []string{"s", "script"} {
		flags.Func(name, "", func(string) error {
			return errors.New("scripts are not run here: use --method, --header and --body")
		})
	}
}

func (r *raw) requestFlags(flags *flag.FlagSet) {
	for _, name := range []string{"H", "header"} {
		flags.Func(name, "", func(s string) error {
			r.headers = append(r.headers, s)
			return nil
		})
	}
	flags.StringVar(&r.method, "method", "", "")
	flags.StringVar(&r.body, "body", "", "")
	flags.IntVar(&r.status, "expect-status", 0, "")
	flags.StringVar(&r.expectBody, "expect-body", "", "")
	flags.BoolVar(&r.h2, "h2", false, "")
	flags.BoolVar(&r.insecure, "insecure", false, "")
	flags.BoolVar(&r.latency, "L", false, "")
	flags.BoolVar(&r.latency, "latency", false, "")
}

func (o *options) judgeFlags(flags *flag.FlagSet) {
	flags.Func("max-p50", "", duration(&o.budgets.P50))
	flags.Func("max-p99", "", duration(&o.budgets.P99))
	flags.Func("max-p999", "", duration(&o.budgets.P999))
	flags.Func("min-rate", "", number(func(v float64) { o.budgets.MinRate = v }))
	flags.Func("max-errors", "", func(s string) (err error) {
		o.budgets.Errors, err = result.ParseErrorBudget(s)
		return err
	})
	flags.Func("max-lag", "", duration(&o.limits.LagP99))
	flags.Func("max-steal", "", func(s string) error {
		v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if err != nil || v <= 0 || v > 100 {
			return errors.New("write a percentage over 0, such as 2%")
		}
		o.limits.Stolen = v / 100
		return nil
	})
}

func (o *options) outputFlags(flags *flag.FlagSet) {
	for _, format := range formats {
		flags.Func(format.name, "", func(path string) error {
			if path == "" {
				return errors.New("it needs a file name, or - for standard output")
			}
			o.outputs = append(o.outputs, output{format: format, path: path})
			return nil
		})
	}
	flags.StringVar(&o.metricsBind, "metrics-bind", "", "")
	flags.StringVar(&o.control, "control", "", "")
	flags.BoolVar(&o.quiet, "quiet", false, "")
}

// finish puts together what flags say in parts.
func (o options) finish(r raw, urls []string) (options, error) {
	switch {
	case len(urls) == 0:
		return o, errors.New("no URL: try loadtest -R 1000 http://127.0.0.1:8080/, or -h")
	case o.plan.Rate == 0 && !o.plan.Capacity:
		return o, errors.New("no rate: pass -R with requests per second, or --closed for capacity only")
	case o.plan.Capacity && (o.budgets.P50 > 0 || o.budgets.P99 > 0 || o.budgets.P999 > 0):
		return o, errors.New("--closed says nothing about latency: take --max-p50, --max-p99 and --max-p999 away, or pass -R")
	case o.outputs.onStandardOutput() > 1:
		return o, errors.New("only one output can be - for standard output")
	}
	if r.h2 {
		o.plan.Protocol = engine.HTTP2
	}
	if r.insecure {
		o.plan.TLS = &tls.Config{InsecureSkipVerify: true} // asked for, by that name
	}
	if r.latency {
		o.spectrum = result.Detailed
	}
	body, err := textOrFile(r.body)
	if err != nil {
		return o, fmt.Errorf("--body: %w", err)
	}
	want, err := textOrFile(r.expectBody)
	if err != nil {
		return o, fmt.Errorf("--expect-body: %w", err)
	}
	for _, url := range urls {
		o.plan.Targets = append(o.plan.Targets, engine.Target{
			Request: wire.Request{Method: r.method, URL: url, Headers: r.headers, Body: body}, Status: r.status, Expect: want,
		})
	}
	return o, nil
}

// textOrFile is the text itself, or after @ that of a file; nil for nothing.
func textOrFile(s string) ([]byte, error) {
	if path, ok := strings.CutPrefix(s, "@"); ok {
		return os.ReadFile(path)
	}
	if s == "" {
		return nil, nil
	}
	return []byte(s), nil
}

// number reads counts and rates, with wrk2's k and M.
func number(set func(float64)) func(string) error {
	return func(s string) error {
		digits, unit := s, 1.0
		for suffix, factor := range map[string]float64{"k": 1e3, "M": 1e6} {
			if d, ok := strings.CutSuffix(s, suffix); ok {
				digits, unit = d, factor
			}
		}
		v, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(v > 0) || v*unit > 1e9 {
			return errors.New("write a number over 0, such as 100, 2.5k or 1M")
		}
		set(v * unit)
		return nil
	}
}

// duration reads Go's durations and, as wrk2 does, plain seconds.
func duration(set *time.Duration) func(string) error {
	return func(s string) error {
		if v, err := strconv.ParseFloat(s, 64); err == nil && v >= 0 && v < 1e9 {
			*set = time.Duration(v * float64(time.Second))
			return nil
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return errors.New("write a duration, such as 30s or 500ms; a plain number is seconds")
		}
		*set = d
		return nil
	}
}
