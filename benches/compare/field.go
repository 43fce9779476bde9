package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/contender"
	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/report"
)

// field is the contenders of one workload, all alive while it is measured.
type field struct {
	*bench
	w       workload
	want    []byte // the right answer
	running []*contender.Running
	absent  map[string]string

	most float64 // requests a second that the reference does when saturated
	cost float64 // its seconds of processor time a request then
}

// start starts and verifies everybody. Who fails is absent.
func (f *field) start(ctx context.Context) error {
	for i, c := range f.contenders {
		if why := f.w.absentFrom(c.Name, c.Terminates); why != "" {
			f.absent[c.Name] = why
			continue
		}
		site, err := f.site(f.w, c.Name)
		if err != nil {
			return err
		}
		r, err := c.Start(ctx, site)
		if errors.Is(err, contender.ErrNotFound) {
			f.report.Contenders[i].Missing = err.Error()
		}
		if err != nil {
			f.leaveOut(c.Name, err.Error())
			continue
		}
		q := contender.Request{Method: f.w.method, Path: f.w.path, Body: f.w.body, HTTP2: f.w.http2, Want: f.want}
		if err := r.Verify(ctx, q); err != nil {
			f.leaveOut(c.Name, "wrong answer: "+err.Error())
			r.Stop()
			continue
		}
		f.running = append(f.running, r)
	}
	return ctx.Err()
}

func (f *field) leaveOut(name, why string) {
	f.absent[name] = why
	f.logf("%s: %s is left out: %s", f.w.name, name, why)
}

func (f *field) stop() {
	for _, r := range f.running {
		r.Stop()
	}
}

// reference is ferryman, or nil if it does not take part.
func (f *field) reference() *contender.Running {
	for _, r := range f.running {
		if r.Name == f.report.Reference {
			return r
		}
	}
	return nil
}

// calibrate finds out what the reference can do, from which the fixed rates and lengths follow.
func (f *field) calibrate(ctx context.Context) error {
	b, err := f.once(ctx, f.reference(), f.section(saturated, 0))
	if err != nil {
		return err
	}
	if b.Refused != "" {
		return errors.New(f.w.name + ": ferryman saturated: " + b.Refused)
	}
	f.most, f.cost = b.Outcome.RightRate, b.CPUPerRequest()/1e6
	f.logf("%s: ferryman saturated: %.0f requests/s, %.1f us each", f.w.name, f.most, f.cost*1e6)
	return nil
}

// rate is what a load means for this workload, in requests a second; 0 for saturated.
func (f *field) rate(name string) float64 {
	switch name {
	case light:
		return round(f.most * lightShare)
	case heavy:
		return round(f.most * heavyShare)
	}
	return 0
}

// round leaves two digits that mean something.
func round(v float64) float64 {
	if v < 10 {
		return math.Max(1, math.Round(v))
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Round(v/unit) * unit
}

// length is how long a block lasts at a rate: at least what was asked for, and long enough for a fifth of
// a second of processor time.
func (f *field) length(rate float64) time.Duration {
	const most = 10 * time.Second
	if rate == 0 {
		rate = f.most
	}
	if f.o.quick || rate == 0 || f.cost == 0 {
		return f.o.block
	}
	needed := time.Duration(0.2 / (f.cost * rate) * float64(time.Second))
	return max(f.o.block, min(needed, most)).Round(10 * time.Millisecond)
}

// section is a fresh section of the report.
func (f *field) section(name string, rate float64) report.Section {
	s := report.Section{
		Workload: f.w.name, Title: f.w.title, Load: name, Rate: rate, Connections: f.w.fixed, Streams: f.w.streams, Absent: f.absent,
	}
	if name == saturated {
		s.Connections = f.w.closed
	}
	return s
}

// job is a block's load on a contender.
func (f *field) job(r *contender.Running, s report.Section, length time.Duration) load.Job {
	j := load.Job{
		URL: r.URL(f.w.path), Method: f.w.method, Body: f.w.body, Want: f.want, Rate: s.Rate, Connections: s.Connections,
		Streams: s.Streams, Warmup: warmup, Duration: length, NoKeepAlive: f.w.noKeepAlive, HTTP2: f.w.http2,
	}
	if f.w.tls {
		j.Roots = f.pair.Cert
	}
	return j
}
