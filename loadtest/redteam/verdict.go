package redteam

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is what one attack came to.
type Verdict struct {
	Attack, Engine      string
	Sent                float64       // MiB
	Before, Peak, After float64       // MiB resident
	Cooled              time.Duration // from the attackers' leaving until memory was back, or nobody waited any longer
	CPU                 time.Duration
	Undisturbed, During latency
	Answers             int // that were looked at
	figures             []figure
	Breaches
}

// heard takes what the bystander says.
func (v *Verdict) heard(s seen) {
	v.Answers += int(s.Right)
	v.addFaults("the bystander's answers", s.Faults, s.First)
}

// slowdown is how much longer the bystander waited than it does when undisturbed.
func (v *Verdict) slowdown() float64 {
	return float64(v.During.p50) / float64(max(v.Undisturbed.p50, floor))
}

func (v *Verdict) judge(a Attack, f *faults) {
	if v.Peak > a.peak(v.Before) {
		v.add("peak", "peak %.0f MiB, over %.0f", v.Peak, a.peak(v.Before))
	}
	if v.After > a.after(v.Before) {
		v.add("after", "%.0f MiB after %v, over %.0f", v.After, v.Cooled.Round(time.Second), a.after(v.Before))
	}
	if s := v.slowdown(); s > a.ratio() && !(v.Engine == other && v.During.p50 < schedulers) {
		v.addLate("p50", "the bystander's p50 is %v, %.0f times its undisturbed one, over %.0f", v.During.p50.Round(10*time.Microsecond), s, a.ratio())
	}
	if v.During.max > worst {
		v.addLate("worst", "the bystander waits for %v, over %v", v.During.max.Round(10*time.Millisecond), worst)
	}
	if n := min(v.Undisturbed.n, v.During.n); n < 50 && !a.Alone {
		v.add("listening", "the bystander has only %d answers", n)
	}
	for _, g := range v.figures {
		if g.broken() {
			v.add(g.name, "%v", g)
		}
	}
	v.addFaults("answers", f.n.Load(), f.first)
}

// String is a line of figures, and one for each bound that is broken.
func (v *Verdict) String() string {
	perMiB := 0.0
	if v.Sent > 0 {
		perMiB = v.CPU.Seconds() / v.Sent
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%-4s %-18s %-10s sent %6.2f MiB  rss %2.0f > %4.0f > %3.0f MiB in %4.1fs  cpu %4.2fs %7.3f s/MiB  p50 %5.1f ms %4.1fx p99 %5.1f ms %4.1fx  %5d answers",
		v.word(), v.Attack, v.Engine, v.Sent, v.Before, v.Peak, v.After, v.Cooled.Seconds(), v.CPU.Seconds(), perMiB,
		v.During.p50.Seconds()*1000, v.slowdown(),
		v.During.p99.Seconds()*1000, float64(v.During.p99)/float64(max(v.Undisturbed.p99, floor)), v.Answers)
	for _, g := range v.figures {
		s.WriteString("\n     " + g.String())
	}
	return s.String() + v.lines()
}
