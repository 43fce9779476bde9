package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/contender"
	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/proc"
	"github.com/Bunty9/ferryman/benches/compare/report"
	"github.com/Bunty9/ferryman/loadtest/machine"
)

// bench is a comparison that goes on: what is alive from its first block to its last.
type bench struct {
	o      options
	log    io.Writer // progress
	root   string    // of the repository
	dir    string    // for everything that is made here; removed at the end
	report *report.Run

	programs   contender.Programs
	contenders []contender.Contender
	upstream   *contender.Upstream
	generator  *load.Generator
	pair       contender.Pair
	tracer     proc.Tracer // without a name: there is none
}

func (b *bench) logf(format string, a ...any) {
	fmt.Fprintf(b.log, "%6.1fs "+format+"\n", append([]any{time.Since(b.report.Started).Seconds()}, a...)...)
}

// open builds and starts what all blocks share. close must be called, also after an error.
func open(ctx context.Context, o options, log io.Writer) (*bench, error) {
	b := &bench{o: o, log: log, report: &report.Run{
		Schema: report.Schema, Started: time.Now(), Command: o.args, Machine: machine.Describe(),
		Reference: contender.Ferryman, Pairs: o.pairs,
	}}
	if runtime.GOOS != "linux" {
		return b, errors.New("processor time and memory are read from Linux's /proc: there is no other way yet")
	}
	var err error
	if b.root, err = findRoot(); err != nil {
		return b, err
	}
	if b.dir, err = os.MkdirTemp("", "ferryman-bench-"); err != nil {
		return b, err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { // workers of NGINX may run as somebody else
		return b, err
	}
	b.report.Commit = commit(ctx, b.root)
	b.logf("build")
	echo, err := b.build(ctx)
	if err != nil {
		return b, err
	}
	if b.upstream, err = contender.StartUpstream(ctx, echo, b.dir); err != nil {
		return b, err
	}
	self, err := os.Executable()
	if err != nil {
		return b, err
	}
	if b.generator, err = load.Start(self, b.dir); err != nil {
		return b, err
	}
	if b.pair, err = contender.NewPair(b.dir); err != nil {
		return b, err
	}
	return b, b.describe(ctx)
}

// describe finds out who takes part and what can be counted.
func (b *bench) describe(ctx context.Context) (err error) {
	if b.contenders, err = contender.Pick(contender.All(b.programs), b.o.contenders); err != nil {
		return err
	}
	if b.tracer, err = proc.FindTracer(ctx); err != nil {
		b.logf("%v", err)
	}
	b.report.Tracer = b.tracer.Name
	for _, c := range b.contenders {
		b.report.Contenders = append(b.report.Contenders, report.Contender{
			Name: c.Name, Title: c.Title, Version: c.Version(ctx), Process: c.Name != contender.Direct,
		})
	}
	return nil
}

// close ends everything and removes what was made.
func (b *bench) close() {
	if b.generator != nil {
		b.generator.Stop()
	}
	if b.upstream != nil {
		b.upstream.Stop()
	}
	if b.dir != "" {
		_ = os.RemoveAll(b.dir) // it is in the folder for such things
	}
}

// lineUp asks the upstream for the right answer and starts everybody. stop must be called, also after an error.
func (b *bench) lineUp(ctx context.Context, w workload) (*field, error) {
	f := &field{bench: b, w: w, absent: map[string]string{}}
	var err error
	if f.want, err = b.upstream.Get(ctx, w.method, w.path, w.body); err != nil {
		return f, fmt.Errorf("the upstream itself: %w", err)
	}
	return f, f.start(ctx)
}

// workload measures one workload under all loads. An error is for the end of the whole comparison:
// a contender that cannot take part is in the report.
func (b *bench) workload(ctx context.Context, w workload) error {
	f, err := b.lineUp(ctx, w)
	defer f.stop()
	if err != nil {
		return err
	}
	if f.reference() == nil {
		b.report.Sections = append(b.report.Sections, f.section(saturated, 0))
		return fmt.Errorf("%s: ferryman does not take part: %s", w.name, f.absent[contender.Ferryman])
	}
	if err := f.calibrate(ctx); err != nil {
		return err
	}
	for _, name := range []string{saturated, heavy, light} {
		if !slices.Contains(b.o.loads, name) {
			continue
		}
		s := f.section(name, f.rate(name))
		err := f.measure(ctx, &s)
		b.report.Sections = append(b.report.Sections, s) // as far as it came
		if err != nil {
			return err
		}
	}
	return nil
}

// site is where a contender is to serve a workload.
func (b *bench) site(w workload, name string) (contender.Site, error) {
	s := contender.Site{
		Configs: filepath.Join(b.root, "benches"), Dir: filepath.Join(b.dir, w.name, name), Upstream: b.upstream.Addr,
		Workers: runtime.NumCPU(), TLS: w.tls, Pair: b.pair,
	}
	var err error
	if s.Listen, err = contender.FreeAddress(); err != nil {
		return s, err
	}
	s.Metrics, err = contender.FreeAddress()
	return s, err
}
