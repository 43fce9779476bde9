package result

import (
	"fmt"
	"math"
	"strings"
)

// drawTimeline draws a strip per target and returns the height of all: outcomes as stacked columns,
// the worst response time as a line over them, marks across.
func (r *Report) drawTimeline(c *canvas, top float64) int {
	for i, t := range r.Timeline.Targets {
		r.drawStrip(c, t, top+float64(i*(stripHeight+chartPadding)))
	}
	return len(r.Timeline.Targets) * (stripHeight + chartPadding)
}

// column is what a pixel of the timeline sums up.
type column struct {
	ok, refused, bad float64
	worst            int64
}

// columns folds the timeline into at most one column per pixel, and says how many buckets each has.
func (t TimelineTarget) columns() (list []column, per int) {
	per = max(1, (len(t.OK)+plotWidth-1)/plotWidth)
	list = make([]column, (len(t.OK)+per-1)/per)
	for i := range t.OK {
		x := &list[i/per]
		x.ok += float64(t.OK[i])
		x.refused += float64(t.Refused[i])
		x.bad += float64(t.Bad[i])
		x.worst = max(x.worst, int64(t.WorstUS[i]))
	}
	return list, per
}

func (r *Report) drawStrip(c *canvas, t TimelineTarget, top float64) {
	bottom := top + stripHeight
	c.text(plotLeft, top-8, "t", "start", t.Name+": right (green), refused (yellow), bad (red); line: worst response time")
	list, per := t.columns()
	most, worst := 1.0, int64(1000)
	for _, x := range list {
		most = max(most, x.ok+x.refused+x.bad)
		worst = max(worst, x.worst)
	}
	axis := newLogAxis(100, worst, top, bottom)
	axis.grid(c)
	seconds := float64(len(list)*per) * r.Timeline.BucketMS / 1000
	width := plotWidth / float64(max(len(list), 1))
	for _, layer := range []struct {
		class string
		from  func(column) (low, high float64)
	}{
		{"ok", func(x column) (float64, float64) { return 0, x.ok }},
		{"no", func(x column) (float64, float64) { return x.ok, x.ok + x.refused }},
		{"bad", func(x column) (float64, float64) { return x.ok + x.refused, x.ok + x.refused + x.bad }},
	} {
		if path := bars(list, layer.from, width, bottom, stripHeight/most); path != "" {
			c.add(`<path class="%s" d="%s"/>`, layer.class, path)
		}
	}
	c.add(`<polyline class="w" points="%s"/>`, worstLine(list, axis, width))
	r.timeAxis(c, seconds, top, bottom)
}

// bars is a path of one rectangle per column that has something in it. Equal neighbours share one.
func bars(list []column, from func(column) (low, high float64), width, bottom, scale float64) string {
	var path strings.Builder
	for i := 0; i < len(list); {
		low, high := from(list[i])
		j := i + 1
		for j < len(list) {
			if l, h := from(list[j]); l != low || h != high {
				break
			}
			j++
		}
		if high > low {
			x := plotLeft + float64(i)*width
			fmt.Fprintf(&path, "M%.1f %.1fh%.2fV%.1fh-%.2fz", x, bottom-low*scale, float64(j-i)*width, bottom-high*scale, float64(j-i)*width)
		}
		i = j
	}
	return path.String()
}

func worstLine(list []column, axis logAxis, width float64) string {
	var points []string
	for i, x := range list {
		if x.worst > 0 {
			points = append(points, fmt.Sprintf("%.1f,%.1f", plotLeft+(float64(i)+0.5)*width, axis.y(x.worst)))
		}
	}
	return strings.Join(points, " ")
}

// timeAxis labels the seconds below a strip and draws the marks across it.
func (r *Report) timeAxis(c *canvas, seconds, top, bottom float64) {
	if seconds <= 0 {
		return
	}
	step := math.Pow(10, math.Floor(math.Log10(seconds)))
	if seconds/step < 3 {
		step /= 5
	}
	for s := 0.0; s <= seconds; s += step {
		x := plotLeft + s/seconds*plotWidth
		c.rule("g", x, bottom, x, bottom+4)
		c.text(x, bottom+16, "", "middle", fmt.Sprintf("%.4gs", s))
	}
	for _, m := range r.Marks {
		if m.AtS < 0 || m.AtS > seconds {
			continue
		}
		x := plotLeft + m.AtS/seconds*plotWidth
		c.rule("m", x, top, x, bottom)
		c.text(x+3, top+11, "ml", "start", m.Name)
	}
}
