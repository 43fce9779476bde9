package result

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
)

// WriteText writes the report for people: the table that wrk2 prints and what it leaves out. spectrum
// adds the detailed percentiles.
func (r *Report) WriteText(w io.Writer, spectrum Spectrum) error {
	p := &printer{w: w}
	r.heading(p)
	if r.Kind == Capacity {
		p.line("  CAPACITY ONLY: a closed loop. It tells how much the target can take and nothing about latency.")
	} else {
		r.latencies(p, spectrum)
	}
	r.outcomes(p)
	p.line("%s requests in %s, %s read", count(r.Total.Requests), r.elapsed(), size(r.Total.Bytes))
	p.line("Requests/sec: %10.2f", float64(r.Total.Requests-r.Total.Unsent)/max(r.ElapsedS, 1e-9))
	p.line("Transfer/sec: %10s", size(int64(float64(r.Total.Bytes)/max(r.ElapsedS, 1e-9))))
	p.line("Generator: %.1f us of processor time per request, %.1f%% stolen from the machine", r.Cost.CPUPerReqUS, 100*r.Stolen)
	r.verdict(p)
	return p.err
}

// Spectrum says how much of a distribution the text shows.
type Spectrum int

const (
	// Brief is the short table only.
	Brief Spectrum = iota
	// Detailed adds every percentile that the histogram can tell apart, as wrk2's --latency does.
	Detailed
)

// printer remembers the first error, so that the text reads without checks.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", a...)
	}
}

func (r *Report) elapsed() string {
	return time.Duration(r.ElapsedS * float64(time.Second)).Round(10 * time.Millisecond).String()
}

func (r *Report) heading(p *printer) {
	s := r.Setup
	for i, url := range s.URLs {
		if i == 0 {
			p.line("Running %s test @ %s", time.Duration(s.DurationS*float64(time.Second)), url)
		} else {
			p.line("%s and @ %s", strings.Repeat(" ", len("Running test")), url)
		}
	}
	rate := fmt.Sprintf("%g requests/s, %s", s.Rate, s.Mode)
	if r.Kind == Capacity {
		rate = "as fast as it answers"
	}
	keep := ""
	if !s.KeepAlive {
		keep = ", a connection per request"
	}
	p.line("  %d connections on %d %s, %s, %s%s", s.Connections, s.Loops, s.Engine, rate, s.Protocol, keep)
	if s.WarmupS > 0 {
		p.line("  after a warm-up of %s", time.Duration(s.WarmupS*float64(time.Second)))
	}
	if r.Interrupted {
		p.line("  stopped after %s", r.elapsed())
	}
}

func (r *Report) latencies(p *printer, spectrum Spectrum) {
	t := r.Total.Response
	p.line("  Latency Distribution (HdrHistogram - response time: done - intended)")
	for _, x := range []struct {
		percent float64
		us      int64
	}{{50, t.P50US}, {75, t.P75US}, {90, t.P90US}, {99, t.P99US}, {99.9, t.P999US}, {99.99, t.P9999US}, {99.999, t.P99999US}, {100, t.MaxUS}} {
		p.line("%7.3f%% %9s", x.percent, micros(x.us))
	}
	if spectrum == Detailed && p.err == nil {
		p.line("\n  Detailed Percentile spectrum:")
		p.err = r.WriteHGRM(p.w)
		p.line("----------------------------------------------------------")
	}
	p.line("  %-14s %9s %9s %9s %9s", "", "p50", "p99", "p99.9", "max")
	for _, row := range []struct {
		name string
		p    Percentiles
	}{{"response time", *t}, {"service time", *r.Total.Service}, {"send lag", r.SendLag}} {
		p.line("  %-14s %9s %9s %9s %9s", row.name, micros(row.p.P50US), micros(row.p.P99US), micros(row.p.P999US), micros(row.p.MaxUS))
	}
}

func (r *Report) outcomes(p *printer) {
	p.line("  Outcomes: %s", inClasses(r.Total))
	if codes := inStatuses(r.Total); codes != "" {
		p.line("  Statuses: %s", codes)
	}
	if r.Total.Bad > 0 {
		p.line("  Bad: %s, due from %.3f s to %.3f s", count(r.Total.Bad), *r.Total.FirstBadS, *r.Total.LastBadS)
	}
	c := r.Connections
	p.line("  Connections: %d of %d at the start, %d dialled in all", c.Established, c.Asked, c.Dials)
	if c.Unsolicited > 0 {
		p.line("  Unsolicited: %d times bytes came that no request had asked for", c.Unsolicited)
	}
	for _, m := range r.Marks {
		p.line("  Mark: %-20s %9.3f s", m.Name, m.AtS)
	}
	if len(r.Targets) < 2 {
		return
	}
	for _, o := range r.Targets {
		p.line("  Target %s", o.Name)
		p.line("    %s", inClasses(o))
		if o.Response != nil {
			p.line("    response p50 %s, p99 %s, max %s", micros(o.Response.P50US), micros(o.Response.P99US), micros(o.Response.MaxUS))
		}
		if o.Bad > 0 {
			p.line("    bad %s, due from %.3f s to %.3f s", count(o.Bad), *o.FirstBadS, *o.LastBadS)
		}
	}
}

func (r *Report) verdict(p *printer) {
	for _, b := range r.Budgets {
		kept := "kept"
		if !b.Kept {
			kept = "MISSED"
		}
		p.line("  Budget: %-22s %12s, measured %12s  %s", b.Name, b.Limit, b.Measured, kept)
	}
	p.line("Verdict: %s", r.Verdict.Outcome)
	for _, reason := range r.Verdict.Reasons {
		p.line("  - %s", reason)
	}
}

// inClasses lists the outcomes that occurred, ok first.
func inClasses(o Outcome) string {
	var list []string
	for c := range Classes {
		if n := o.Classes[c.String()]; n > 0 || c == OK {
			list = append(list, fmt.Sprintf("%s %s", strings.ReplaceAll(c.String(), "_", " "), count(n)))
		}
	}
	if o.Unsent > 0 {
		list = append(list, fmt.Sprintf("(%s never sent)", count(o.Unsent)))
	}
	return strings.Join(list, ", ")
}

func inStatuses(o Outcome) string {
	codes := make([]int, 0, len(o.Statuses))
	for code := range o.Statuses {
		codes = append(codes, code)
	}
	sort.Ints(codes)
	var list []string
	for _, code := range codes {
		list = append(list, fmt.Sprintf("%d x %s", code, count(o.Statuses[code])))
	}
	return strings.Join(list, ", ")
}

// micros writes microseconds as wrk2 does.
func micros(us int64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%dus", us)
	case us < 1_000_000:
		return fmt.Sprintf("%.2fms", float64(us)/1e3)
	}
	return fmt.Sprintf("%.2fs", float64(us)/1e6)
}

// count groups digits by three.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func size(bytes int64) string {
	v, unit := float64(bytes), 0
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.2f%s", v, [...]string{"B", "KB", "MB", "GB", "TB"}[unit])
}
