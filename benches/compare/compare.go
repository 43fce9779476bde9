package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/gate"
	"github.com/Bunty9/ferryman/benches/compare/report"
	"github.com/Bunty9/ferryman/loadtest/machine"
)

// compare measures what the options ask for and writes the report. What was measured is written also
// where something failed or the user has had enough.
func compare(ctx context.Context, o options, stdout, stderr io.Writer) error {
	run, err := measured(ctx, o, stderr)
	if run == nil || len(run.Sections) == 0 {
		return err
	}
	return errors.Join(err, publish(run, o.out, stdout, stderr))
}

// measured is a run, or as much of it as there is. Nil: it did not begin.
func measured(ctx context.Context, o options, stderr io.Writer) (*report.Run, error) {
	b, err := open(ctx, o, stderr)
	defer b.close()
	if err != nil {
		return nil, err
	}
	for _, w := range workloads() {
		if slices.Contains(o.workloads, w.name) && ctx.Err() == nil {
			err = errors.Join(err, b.workload(ctx, w))
		}
	}
	b.report.Seconds = time.Since(b.report.Started).Seconds()
	b.report.LoadAfter = machine.Describe().LoadAverage
	b.report.Sum()
	return b.report, err
}

// publish prints the tables and writes the files.
func publish(run *report.Run, dir string, stdout, stderr io.Writer) error {
	var table, raw, picture bytes.Buffer
	if err := errors.Join(run.WriteMarkdown(&table), run.WriteJSON(&raw), run.WriteSVG(&picture)); err != nil {
		return err
	}
	if _, err := stdout.Write(table.Bytes()); err != nil {
		return err
	}
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]*bytes.Buffer{"report.md": &table, "report.json": &raw, "report.svg": &picture} {
		if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "written: %s with report.md, report.json and report.svg\n", dir)
	return nil
}

// gateLimit bounds the gate in time, the builds included.
const gateLimit = 175 * time.Second

var errGate = errors.New("the gate does not pass")

// runGate measures little, and judges it. A rule counts as broken if it is so twice.
func runGate(ctx context.Context, o options, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, gateLimit)
	defer cancel()
	for attempt := 1; ; attempt++ {
		run, err := measured(ctx, o, stderr)
		if err != nil {
			return err
		}
		verdicts := gate.Judge(run, gate.Defaults())
		for _, v := range verdicts {
			fmt.Fprintln(stdout, v)
		}
		if gate.Passed(verdicts) {
			return nil
		}
		if attempt == 2 {
			return errors.Join(errGate, publish(run, o.out, io.Discard, stderr))
		}
		fmt.Fprintln(stdout, "measured again, as this could be the machine:")
	}
}
