package result

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"
)

// Sizes of a chart in pixels. Both charts have the same width, so that they line up.
const (
	chartWidth   = 920
	plotLeft     = 70
	plotRight    = chartWidth - 35
	plotWidth    = plotRight - plotLeft
	curveHeight  = 300
	stripHeight  = 130 // per target
	chartPadding = 40
)

const chartStyle = `text{font:12px sans-serif;fill:#333}.t{font-weight:bold}.g{stroke:#ddd}.b{stroke:#c60;stroke-dasharray:6 3}` +
	`.m{stroke:#06c;stroke-dasharray:2 2}.r{stroke:#0a6;fill:none;stroke-width:2}.s{stroke:#999;fill:none;stroke-width:1.5}` +
	`.ok{fill:#9c9}.no{fill:#fc6}.bad{fill:#d33}.w{stroke:#555;fill:none}.bl{fill:#c60}.ml{fill:#06c}`

// canvas gathers SVG elements.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, a ...any) { fmt.Fprintf(c, format+"\n", a...) }

func (c *canvas) text(x, y float64, class, anchor, s string) {
	c.add(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, html.EscapeString(s))
}

func (c *canvas) rule(class string, x1, y1, x2, y2 float64) {
	c.add(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// logAxis maps microseconds to a height, by decades.
type logAxis struct {
	low, high   float64 // exponents of ten
	top, bottom float64
}

// newLogAxis spans whole decades around the values.
func newLogAxis(low, high int64, top, bottom float64) logAxis {
	a := logAxis{top: top, bottom: bottom, low: math.Floor(math.Log10(float64(max(low, 1)))), high: math.Ceil(math.Log10(float64(max(high, 1))))}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

func (a logAxis) y(us int64) float64 {
	share := (math.Log10(float64(max(us, 1))) - a.low) / (a.high - a.low)
	return a.bottom - min(max(share, 0), 1)*(a.bottom-a.top)
}

// grid draws the decades.
func (a logAxis) grid(c *canvas) {
	for e := a.low; e <= a.high; e++ {
		us := int64(math.Round(math.Pow(10, e)))
		c.rule("g", plotLeft, a.y(us), plotRight, a.y(us))
		c.text(plotLeft-6, a.y(us)+4, "", "end", (time.Duration(us) * time.Microsecond).String())
	}
}

// WriteSVG draws the timeline and, of an open loop, the percentile curve below it, as one image
// without scripts. A report that was read from JSON has no histograms and so no curve.
func (r *Report) WriteSVG(w io.Writer) error {
	c := &canvas{}
	height := chartPadding
	height += r.drawTimeline(c, float64(height))
	if r.Kind == OpenLoop && r.response != nil {
		height += r.drawCurve(c, float64(height))
	}
	_, err := fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>%s</style>\n"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n", chartWidth, height, chartWidth, height, chartStyle, c.String())
	return err
}

// The percentile axis stretches what is rare: 90 % is one step, 99 % two.
const lastNines = 5

func percentX(percent float64) float64 {
	nines := lastNines * 1.0
	if percent < 100 {
		nines = min(-math.Log10(1-percent/100), lastNines)
	}
	return plotLeft + nines/lastNines*plotWidth
}

// drawCurve draws response and service times by percentile, with the budgets, and returns its height.
func (r *Report) drawCurve(c *canvas, top float64) int {
	c.text(plotLeft, top-12, "t", "start", "Latency by percentile: response time (green), service time (grey)")
	high := max(r.Total.Response.MaxUS, 1)
	for _, b := range r.Budgets {
		high = max(high, int64(b.limit/time.Microsecond))
	}
	axis := newLogAxis(max(min(r.Total.Response.MinUS, r.Total.Service.MinUS), 1), high, top, top+curveHeight)
	axis.grid(c)
	for _, percent := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		c.rule("g", percentX(percent), top, percentX(percent), top+curveHeight)
		c.text(percentX(percent), top+curveHeight+16, "", "middle", fmt.Sprintf("%g%%", percent))
	}
	for _, line := range []struct {
		class string
		at    func(percent float64) int64
	}{{"s", r.service.ValueAtPercentile}, {"r", r.response.ValueAtPercentile}} {
		var points []string
		for x := 0.0; x <= 100; x++ {
			percent := 100 * (1 - math.Pow(10, -x/100*lastNines))
			points = append(points, fmt.Sprintf("%.1f,%.1f", percentX(percent), axis.y(line.at(percent))))
		}
		c.add(`<polyline class="%s" points="%s"/>`, line.class, strings.Join(points, " "))
	}
	for _, b := range r.Budgets {
		if b.limit > 0 {
			y := axis.y(int64(b.limit / time.Microsecond))
			c.rule("b", plotLeft, y, plotRight, y)
			c.text(plotRight, y-4, "bl", "end", "budget "+b.Name+" "+b.Limit)
		}
	}
	return curveHeight + chartPadding
}
