package report

import (
	"html"
	"io"
)

// The measures of the picture, in pixels.
const (
	width     = 860
	left      = 200 // where bars begin
	right     = 90  // what the numbers need
	barHeight = 18
	barStep   = 24
	headStep  = 44
)

// yardstick is the contender that is no competitor, and is drawn as such.
const yardstick = "floor"

// WriteSVG draws the processor time per request of every section, a bar for each contender and its
// interval as a line across the bar's end.
func (r *Run) WriteSVG(w io.Writer) error {
	p := &printer{w: w}
	p.line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`, width, r.height())
	p.line(`<rect width="100%%" height="100%%" fill="white"/>`)
	p.line(`<text x="10" y="24" font-size="16">CPU microseconds per request, median and 95 %% interval</text>`)
	y := 40
	for i := range r.Sections {
		y = p.panel(r, &r.Sections[i], y)
	}
	p.line(`</svg>`)
	return p.err
}

func (r *Run) height() int {
	h := 60
	for i := range r.Sections {
		h += headStep + barStep*len(r.Sections[i].drawn())
	}
	return h
}

// drawn are the rows with a bar.
func (s *Section) drawn() (rows []Row) {
	for _, row := range s.Rows {
		if row.CPU.N > 0 && row.CPU.Median > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// panel draws a section from y on and returns where the next one begins.
func (p *printer) panel(r *Run, s *Section, y int) int {
	rows := s.drawn()
	most := 0.0
	for _, row := range rows {
		most = max(most, row.CPU.High)
	}
	if most == 0 {
		most = 1
	}
	at := func(v float64) float64 { return left + v/most*(width-left-right) }
	p.line(`<text x="10" y="%d" font-weight="bold">%s</text>`, y+24, html.EscapeString(s.Title+", "+s.conditions()))
	y += headStep - 8
	for _, row := range rows {
		middle := y + barHeight/2
		p.line(`<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, middle+4, html.EscapeString(r.label(row.Contender)))
		p.line(`<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y, at(row.CPU.Median)-left, barHeight, r.color(row))
		p.line(`<path d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8" stroke="black" fill="none"/>`,
			at(row.CPU.Low), middle, at(row.CPU.High), at(row.CPU.Low), middle-4, at(row.CPU.High), middle-4)
		p.line(`<text x="%.1f" y="%d">%.1f</text>`, at(row.CPU.High)+6, middle+4, row.CPU.Median)
		y += barStep
	}
	return y + 8
}

func (r *Run) color(row Row) string {
	switch row.Contender {
	case r.Reference:
		return "#2b6cb0"
	case yardstick:
		return "#cbd5e0"
	}
	return "#90a4ae"
}
