package config

import (
	"fmt"
	"slices"
	"strings"
)

// maxShown bounds how many errors Errors.Error prints.
const maxShown = 50

// Error is one thing that is wrong with a configuration.
type Error struct {
	File string // empty for a configuration built in code
	Line int    // 0 where no line is to blame
	Key  string // such as "routes[0].upstream"; empty where no key is to blame
	Msg  string // what is wrong and what would be right
}

// Error is "file:line: key: message", without the parts that are not known.
func (e Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	return b.String() + e.Msg
}

// Errors is everything that is wrong with a configuration, in the order of the file.
type Errors []Error

// Error has one line per error.
func (es Errors) Error() string {
	var lines []string
	for i, e := range es {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("%s: and %d more", e.File, len(es)-i))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

func (es *Errors) add(line int, key, format string, args ...any) {
	*es = append(*es, Error{Line: line, Key: key, Msg: fmt.Sprintf(format, args...)})
}

// err sorts by line, and is nil where there is nothing to report.
func (es Errors) err() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b Error) int { return a.Line - b.Line })
	return es
}
