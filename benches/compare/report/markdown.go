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

func (p *printer) section(r *Run, s *Section) {
	columns := []string{"", "CPU us/request", r.Reference + " / it", "requests/s"}
	if s.Rate > 0 {
		columns = append(columns, "p50 ms", "p99 ms", "p99 ms added by "+r.Reference)
	}
	columns = append(columns, "memory MiB")
	if s.Rate == 0 {
		columns = append(columns, "system calls/request", "allocations/request")
	}
	columns = append(columns, "")
	p.line("\n### %s, %s\n", s.Title, s.conditions())
	p.line("| %s |", strings.Join(columns, " | "))
	p.line("|%s", strings.Repeat(" --- |", len(columns)))
	for _, row := range s.Rows {
		p.line("| %s |", strings.Join(s.cells(r, row), " | "))
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

func (s *Section) cells(r *Run, row Row) []string {
	cells := []string{r.label(row.Contender), spread(row.CPU, 1, 1), spread(row.CPURatio, 1, 2), spread(row.Rate, 1, 0)}
	if row.CPU.Median == 0 {
		cells[1], cells[2] = "-", "-"
	}
	if s.Rate > 0 {
		cells = append(cells, spread(row.P50, 1e-3, 2), spread(row.P99, 1e-3, 2), spread(row.AddedP99, 1e-3, 2))
	}
	memory := spread(row.MemoryMiB, 1, 1)
	if row.MemoryMiB.Median == 0 {
		memory = "-"
	}
	cells = append(cells, memory)
	if s.Rate == 0 {
		cells = append(cells, spread(row.SystemCalls, 1, 2), spread(row.Allocations, 1, 3))
	}
	return append(cells, row.Note)
}

// label is a contender's title with its version.
func (r *Run) label(name string) string {
	for _, c := range r.Contenders {
		if c.Name == name {
			return strings.TrimSpace(c.Title + " " + strings.TrimPrefix(c.Version, "v"))
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
