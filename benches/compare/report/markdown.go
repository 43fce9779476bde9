package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/Bunty9/ferryman/benches/compare/stats"
)

// WriteMarkdown writes what was measured as tables, one for each section.
func (r *Run) WriteMarkdown(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s: %s, %d processors, %d MiB, Linux %s, %s, commit %s.", r.Started.UTC().Format("2006-01-02 15:04 UTC"),
		r.Machine.Processor, r.Machine.Processors, r.Machine.MemoryMiB, r.Machine.Kernel, r.Machine.Go, r.Commit)
	p.line("%d pairs a row, medians, 95 %% intervals by bootstrap; load average %.1f before, %.1f after; %s.",
		r.Pairs, r.Machine.LoadAverage, r.LoadAfter, tracedBy(r.Tracer))
	for i := range r.Sections {
		p.section(r, &r.Sections[i])
	}
	return p.err
}

func tracedBy(tracer string) string {
	if tracer == "" {
		return "nothing here could count system calls"
	}
	return "system calls counted by " + tracer
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", a...)
	}
}

// column is a figure of the table. It is left out of sections that it says nothing about.
type column struct {
	head   string
	of     func(Row) stats.Summary
	unit   float64 // what the figure is multiplied with to be printed
	digits int
	fixed  bool // only at a fixed rate
	closed bool // only saturated
}

func (r *Run) columns(s *Section) (columns []column) {
	it := r.Reference + " / it"
	for _, c := range []column{
		{head: "CPU us/request", of: func(r Row) stats.Summary { return r.CPU }, unit: 1, digits: 1},
		{head: it, of: func(r Row) stats.Summary { return r.CPURatio }, unit: 1, digits: 2},
		{head: "requests/s", of: func(r Row) stats.Summary { return r.Rate }, unit: 1},
		{head: it, of: func(r Row) stats.Summary { return r.RateRatio }, unit: 1, digits: 2, closed: true},
		{head: "p50 ms", of: func(r Row) stats.Summary { return r.P50 }, unit: 1e-3, digits: 2, fixed: true},
		{head: "p99 ms", of: func(r Row) stats.Summary { return r.P99 }, unit: 1e-3, digits: 2, fixed: true},
		{head: r.Reference + " - it", of: func(r Row) stats.Summary { return r.AddedP99 }, unit: 1e-3, digits: 2, fixed: true},
		{head: "memory MiB", of: func(r Row) stats.Summary { return r.MemoryMiB }, unit: 1, digits: 1},
		{head: "system calls/request", of: func(r Row) stats.Summary { return r.SystemCalls }, unit: 1, digits: 2, closed: true},
		{head: "allocations/request", of: func(r Row) stats.Summary { return r.Allocations }, unit: 1, digits: 3, closed: true},
	} {
		if fixed := s.Rate > 0; !(c.fixed && !fixed) && !(c.closed && fixed) {
			columns = append(columns, c)
		}
	}
	return columns
}

func (p *printer) section(r *Run, s *Section) {
	columns := r.columns(s)
	p.line("\n### %s, %s\n", s.Title, s.conditions())
	heads := []string{""}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	p.line("| %s | |", strings.Join(heads, " | "))
	p.line("|%s", strings.Repeat(" --- |", len(heads)+1))
	for _, row := range s.Rows {
		cells := []string{r.label(row.Contender)}
		for _, c := range columns {
			cells = append(cells, spread(c.of(row), c.unit, c.digits))
		}
		p.line("| %s | %s |", strings.Join(cells, " | "), row.Note)
	}
}

// conditions describe the load.
func (s *Section) conditions() string {
	text := fmt.Sprintf("%d connections", s.Connections)
	if s.Streams > 1 {
		text += fmt.Sprintf(" of %d streams", s.Streams)
	}
	if s.Rate == 0 {
		return "saturated: " + text
	}
	return fmt.Sprintf("%s: %.0f requests/s, %s", s.Load, s.Rate, text)
}

// label is a contender's title with its version.
func (r *Run) label(name string) string {
	for _, c := range r.Contenders {
		if c.Name == name {
			return strings.TrimSpace(c.Title + " " + c.Version)
		}
	}
	return name
}

// spread writes a summary as "median (low-high)", or "-" where nothing was measured.
func spread(s stats.Summary, unit float64, digits int) string {
	if s.N == 0 {
		return "-"
	}
	number := func(v float64) string { return fmt.Sprintf("%.*f", digits, v*unit) }
	if s.N == 1 {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Low), number(s.High))
}
