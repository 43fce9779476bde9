package redteam

import (
	"fmt"
	"strings"
)

// Breach is a bound that did not hold.
type Breach struct {
	Bound string // its name, the same in each run
	Text  string
	Late  bool // it is of a latency, which a busy machine may break as well
}

// Breaches are all of an attack. None: it was held off.
type Breaches []Breach

// OK reports whether every bound held.
func (b Breaches) OK() bool { return len(b) == 0 }

// onlyLate reports whether nothing but latencies is wrong.
func (b Breaches) onlyLate() bool {
	for _, x := range b {
		if !x.Late {
			return false
		}
	}
	return len(b) > 0
}

// beyond are those of bounds that others do not name.
func (b Breaches) beyond(others Breaches) (more Breaches) {
	named := map[string]bool{}
	for _, x := range others {
		named[x.Bound] = true
	}
	for _, x := range b {
		if !named[x.Bound] {
			more = append(more, x)
		}
	}
	return more
}

func (b *Breaches) add(bound, format string, args ...any) {
	*b = append(*b, Breach{Bound: bound, Text: fmt.Sprintf(format, args...)})
}

func (b *Breaches) addLate(bound, format string, args ...any) {
	*b = append(*b, Breach{bound, fmt.Sprintf(format, args...), true})
}

func (b *Breaches) addFaults(who string, n int64, first []string) {
	if n > 0 {
		b.add("answers", "%s: %d that are wrong, such as: %s", who, n, strings.Join(first, "; "))
	}
}

// word begins a line.
func (b Breaches) word() string {
	if b.OK() {
		return "ok"
	}
	return "FAIL"
}

// lines are one for each, behind a line of figures. What a race detector says takes more.
func (b Breaches) lines() string {
	var s strings.Builder
	for _, x := range b {
		s.WriteString("\n   - " + x.Text)
	}
	return s.String()
}

// briefly is lines, each cut.
func (b Breaches) briefly() string {
	var s strings.Builder
	for _, x := range b {
		s.WriteString("\n   - " + strings.ReplaceAll(x.Text[:min(len(x.Text), 200)], "\n", " "))
	}
	return s.String()
}
