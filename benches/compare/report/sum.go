package report

import (
	"fmt"
	"strings"

	"github.com/Bunty9/ferryman/benches/compare/stats"
)

// Sum fills in the rows of every section.
func (r *Run) Sum() {
	for i := range r.Sections {
		s := &r.Sections[i]
		s.Rows = nil
		for _, c := range r.Contenders {
			s.Rows = append(s.Rows, s.row(c, r.Reference))
		}
	}
}

func (s *Section) row(c Contender, reference string) Row {
	row := Row{Contender: c.Name, Note: c.Missing}
	if why, ok := s.Absent[c.Name]; ok && row.Note == "" {
		row.Note = why
	}
	counted := s.counted(c.Name)
	of := func(figure func(Block) float64) stats.Summary {
		var samples []float64
		for _, b := range counted {
			samples = append(samples, figure(b))
		}
		return stats.Of(samples)
	}
	row.Blocks = len(counted)
	if c.Process {
		row.CPU = of(Block.CPUPerRequest)
		row.MemoryMiB = of(func(b Block) float64 { return float64(b.PSSKiB) / 1024 })
	}
	row.Rate = of(func(b Block) float64 { return b.Outcome.RightRate })
	if s.Rate > 0 {
		row.P50, row.P99 = of(p50), of(p99)
	}
	row.SystemCalls, row.Allocations = s.probed(c.Name, SystemCalls), s.probed(c.Name, Allocations)
	if c.Name != reference {
		row.CPURatio = stats.Of(stats.Ratios(s.pairs(reference, c.Name, Block.CPUPerRequest)))
		row.RateRatio = stats.Of(stats.Ratios(s.pairs(reference, c.Name, func(b Block) float64 { return b.Outcome.RightRate })))
		if s.Rate > 0 {
			row.AddedP50 = stats.Of(stats.Differences(s.pairs(reference, c.Name, p50)))
			row.AddedP99 = stats.Of(stats.Differences(s.pairs(reference, c.Name, p99)))
		}
	}
	s.annotate(&row)
	return row
}

func p50(b Block) float64 { return latency(b).p50 }
func p99(b Block) float64 { return latency(b).p99 }

type times struct{ p50, p99 float64 }

func latency(b Block) times {
	if b.Outcome.Latency == nil {
		return times{}
	}
	return times{float64(b.Outcome.Latency.P50), float64(b.Outcome.Latency.P99)}
}

func (s *Section) counted(name string) (counted []Block) {
	for _, b := range s.Blocks {
		if b.Contender == name && b.Refused == "" {
			counted = append(counted, b)
		}
	}
	return counted
}

// pairs are a figure of a and b from the blocks that were measured beside each other, where both count.
func (s *Section) pairs(a, b string, figure func(Block) float64) (pairs []stats.Pair) {
	firsts := map[int]Block{}
	for _, x := range s.Blocks {
		if x.Contender == a && x.Against == b && x.Refused == "" {
			firsts[x.Pair] = x
		}
	}
	for _, y := range s.Blocks {
		if x, ok := firsts[y.Pair]; ok && y.Contender == b && y.Against == a && y.Refused == "" {
			pairs = append(pairs, stats.Pair{A: figure(x), B: figure(y)})
		}
	}
	return pairs
}

func (s *Section) probed(name, kind string) stats.Summary {
	var samples []float64
	for _, p := range s.Probes {
		if p.Contender == name && p.Kind == kind && p.Requests > 0 {
			samples = append(samples, max(p.Count, 0)/float64(p.Requests))
		}
	}
	return stats.Of(samples)
}

// maxLag is how late the generator may be at the 99th percentile, in microseconds, before its
// lateness shows in the latencies.
const maxLag = 1000

// Pooled is what a contender's probes of one kind come to together: less noise than their median.
func (s *Section) Pooled(name, kind string) stats.Summary {
	sum := s.probed(name, kind)
	count, requests := 0.0, int64(0)
	for _, p := range s.Probes {
		if p.Contender == name && p.Kind == kind {
			count, requests = count+p.Count, requests+p.Requests
		}
	}
	if requests > 0 {
		sum.Median = max(count, 0) / float64(requests)
	}
	return sum
}

// annotate says what a reader must know about the row before believing it.
func (s *Section) annotate(row *Row) {
	refused, late, disturbed, why := 0, 0, 0, ""
	for _, b := range s.Blocks {
		if b.Contender != row.Contender {
			continue
		}
		row.Repeated += b.Repeated
		if b.Refused != "" {
			refused, why = refused+1, b.Refused
			continue
		}
		if s.Rate > 0 && b.Outcome.LagP99 > maxLag {
			late++
		}
		if b.Disturbed() {
			disturbed++
		}
	}
	var notes []string
	if row.Note != "" {
		notes = append(notes, oneLine(row.Note))
	}
	if refused > 0 {
		notes = append(notes, fmt.Sprintf("%d blocks not counted: %s", refused, oneLine(why)))
	}
	if disturbed > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d blocks disturbed", disturbed, row.Blocks))
	}
	if late > 0 {
		notes = append(notes, fmt.Sprintf("generator late in %d of %d blocks", late, row.Blocks))
	}
	if row.Repeated > 0 {
		notes = append(notes, fmt.Sprintf("%d blocks repeated", row.Repeated))
	}
	row.Note = strings.Join(notes, "; ")
}

// oneLine makes a message fit into a cell of a table.
func oneLine(text string) string {
	const most = 160
	text = strings.NewReplacer("\n", " ", "|", "/").Replace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
