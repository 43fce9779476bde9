package config

import (
	"fmt"
	"slices"
	"strings"
)

// maxErrors bounds how many errors are kept, maxShown how many of them Errors.Error prints.
const maxErrors, maxShown = 1000, 50

// Error is one thing that is wrong with a configuration.
type Error struct {
	File string // empty for a configuration built in code
	Line int    // 0 where no line is to blame
	Key  string // such as "routes[0].upstream"; empty where no key is to blame
	Msg  string // what is wrong and what would be right
}

// Error is "file:line: key: message", without the parts that are not known.
func (e Error) Error() string {
	var parts []string
	if e.Line > 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", e.File, e.Line))
	} else if e.File != "" {
		parts = append(parts, e.File)
	}
	if e.Key != "" {
		parts = append(parts, e.Key)
	}
	return strings.Join(append(parts, e.Msg), ": ")
}

// Errors is everything that is wrong with a configuration, in the order of the file.
type Errors []Error

// Error has one line per error.
func (es Errors) Error() string {
	var lines []string
	for _, e := range es[:min(len(es), maxShown)] {
		lines = append(lines, e.Error())
	}
	if more := len(es) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// A report collects errors, one per key: what follows from a bad value is not worth a line.
type report struct {
	errs  Errors
	bad   map[string]bool
	lines map[string]int // where each key of a file is; nil for a configuration built in code
}

func (r *report) fail(key, format string, args ...any) {
	if !r.bad[key] {
		r.bad[key] = true
		r.failAt(r.line(key), key, format, args...)
	}
}

func (r *report) failAt(line int, key, format string, args ...any) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, Error{Line: line, Key: key, Msg: fmt.Sprintf(format, args...)})
	}
}

// line is that of key, or that of the table or list that lacks it; 0 if there is none.
func (r *report) line(key string) int {
	if n := r.lines[key]; n > 0 || key == "" {
		return n
	}
	return r.line(key[:max(strings.LastIndexAny(key, ".["), 0)])
}

// at names the place of key in a message about another one.
func (r *report) at(key string) string {
	if n := r.line(key); n > 0 {
		return fmt.Sprintf("line %d", n)
	}
	return key
}

// byDefault is a remark about a key that nobody wrote.
func (r *report) byDefault(key string) string {
	if r.lines == nil || r.lines[key] > 0 {
		return ""
	}
	return " by default"
}

func (r *report) err(file string) error {
	if len(r.errs) == 0 {
		return nil
	}
	for i := range r.errs {
		r.errs[i].File = file
	}
	slices.SortStableFunc(r.errs, func(a, b Error) int { return a.Line - b.Line })
	return r.errs
}
