package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A reader walks the syntax tree of a file instead of decoding it into a struct: that stops at
// the first wrong type, and who mends a file wants to see everything that is wrong. The tree's
// package promises no stable API; go.mod pins it.
type reader struct {
	report
	c       Config
	data    []byte
	breaks  []int  // offsets of the line ends
	base    int    // offset of what the parser was given
	section string // "" at the top, "routes[0]." in a route, elsewhere in an unknown table
	known   int    // offset behind the last key that was read
}

const elsewhere = "?"

// opening matches a line that begins a table or sets a key.
var opening = regexp.MustCompile(`(?m)^[ \t]*(?:\[\[?[ \t]*[A-Za-z]|([A-Za-z0-9_-]+)[ \t]*=)`)

// listOpening matches a line that begins a list of routes.
var listOpening = regexp.MustCompile(`(?m)^[ \t]*["']?routes["']?[ \t]*=`)

// Parse reads a configuration; name stands for the file in messages. CRLF and a byte order mark
// are fine. The error, if any, is of type Errors and holds all that is wrong.
func Parse(name string, data []byte) (Config, error) {
	data = slices.Clip(bytes.TrimPrefix(data, []byte("\ufeff")))
	r := &reader{c: Default(), data: data, report: report{lines: map[string]int{}, bad: map[string]bool{}}}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return Config{}, Errors{{File: name, Line: 1 + bytes.Count(data[:i], []byte("\n")), Msg: "holds NUL bytes: save it as UTF-8 text"}}
	}
	for i, ch := range data {
		if ch == '\n' {
			r.breaks = append(r.breaks, i)
		}
	}
	r.breaks = append(r.breaks, len(data))
	for r.base < len(data) {
		r.walk()
	}
	r.check(&r.c)
	if err := r.err(name); err != nil {
		return Config{}, err
	}
	for i := range r.c.Routes {
		r.c.Routes[i].Prefix = trimSlash(r.c.Routes[i].Prefix)
	}
	return r.c, nil
}

func (r *reader) lineOf(raw unstable.Range) int {
	return sort.SearchInts(r.breaks, r.base+int(raw.Offset)) + 1
}

// walk reads to the end, or to a syntax error and the place after it where one can go on.
func (r *reader) walk() {
	var p unstable.Parser
	p.Reset(r.data[r.base:])
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.KeyValue:
			r.assign(n)
		default:
			r.enter(n)
		}
	}
	var bad *unstable.ParserError
	if !errors.As(p.Error(), &bad) {
		r.base = len(r.data)
		return
	}
	at := p.Range(bad.Highlight)
	inList := r.section == "" && listOpening.Match(r.data[r.known:r.base+int(at.Offset)])
	if inList {
		r.section = elsewhere
		r.bad["routes"] = true
	}
	r.syntax(r.lineOf(at), bad.Message)
	if inList { // nothing tells what follows from the rest of the list
		r.base = len(r.data)
	}
}

// syntax reports a line that is no TOML, under its key where it has one, and goes on behind it.
func (r *reader) syntax(line int, msg string) {
	key, begin, end := "", 0, r.breaks[line-1]
	if line > 1 {
		begin = r.breaks[line-2] + 1
	}
	switch m := opening.FindSubmatch(r.data[begin:end]); {
	case m != nil && m[1] == nil:
		r.section = elsewhere
		r.bad["routes"] = true
	case m != nil && r.section != elsewhere:
		key = r.section + string(m[1])
		r.lines[key] = line
		r.bad[key] = true
	}
	r.failAt(line, key, "not valid TOML: %s", msg)
	r.base = len(r.data)
	if next := opening.FindIndex(r.data[min(end+1, r.base):]); next != nil && len(r.errs) < maxErrors {
		r.base = end + 1 + next[0]
	}
}

// name is a dotted key as it is written, and its line.
func (r *reader) name(n *unstable.Node) (name string, line int) {
	var parts []string
	for it := n.Key(); it.Next(); {
		part, raw := fmt.Sprintf("%.60q", it.Node().Data), it.Node().Raw
		if bare := part[1 : len(part)-1]; strings.IndexFunc(bare, notBare) < 0 {
			part = bare
		}
		parts = append(parts, part)
		line, r.known = r.lineOf(raw), r.base+int(raw.Offset+raw.Length)
	}
	return strings.Join(parts, "."), line
}

func notBare(ch rune) bool { return ch >= 0x7f || ch != '_' && ch != '-' && !isUnreserved(byte(ch)) }

// enter begins a table.
func (r *reader) enter(n *unstable.Node) {
	name, line := r.name(n)
	r.section = elsewhere
	switch {
	case name == "routes" && n.Kind == unstable.ArrayTable && r.lines[name] > 0:
		r.failAt(line, name, "are a list on line %d: add this one to it, or write each below a line [[routes]]", r.lines[name])
	case name == "routes" && n.Kind == unstable.ArrayTable:
		r.begin(line)
	case name == "routes":
		r.bad[name] = true
		r.failAt(line, name, "each route starts with [[routes]], in double brackets")
	default:
		r.failAt(line, name, "unknown table; the only one is [[routes]]")
	}
}

// begin begins a route.
func (r *reader) begin(line int) {
	table := fmt.Sprintf("routes[%d]", len(r.c.Routes))
	r.lines[table] = line
	r.section = table + "."
	r.c.Routes = append(r.c.Routes, Route{})
}

// list reads routes that are written as a list of inline tables.
func (r *reader) list(v *unstable.Node) {
	const want = `must be a list of tables such as [{ prefix = "/", upstream = "http://127.0.0.1:8000" }]; `
	if r.bad["routes"] = v.Kind != unstable.Array; r.bad["routes"] {
		r.failAt(r.lines["routes"], "routes", want+"it is %s", show(v))
		return
	}
	for it := v.Children(); it.Next(); r.section = "" {
		line, table := r.lines["routes"], it.Node()
		if table.Raw.Length > 0 {
			line = r.lineOf(table.Raw)
		}
		if table.Kind != unstable.InlineTable {
			r.bad["routes"] = true
			r.failAt(line, "routes", want+"it holds %s", show(table))
			continue
		}
		r.begin(line)
		for keys := table.Children(); keys.Next(); {
			r.assign(keys.Node())
		}
	}
}

// assign stores the value of one key of the section that the walk is in.
func (r *reader) assign(n *unstable.Node) {
	name, line := r.name(n)
	key := r.section + name
	fields, others, hint := topFields, routeFields, "belongs to a route: write it below a line [[routes]]"
	var route *Route
	if r.section != "" && r.section != elsewhere {
		fields, others, hint = routeFields, topFields, "belongs at the top of the file, above the first [[routes]]"
		route = &r.c.Routes[len(r.c.Routes)-1]
	}
	named := func(f field) bool { return f.key == name }
	first := r.lines[key]
	switch i := slices.IndexFunc(fields, named); {
	case r.section == elsewhere:
	case first > 0:
		r.failAt(line, key, "is already on line %d: keep one of the two", first)
	case i >= 0:
		r.lines[key] = line
		r.store(key, fields[i], n.Value(), route)
	case name == "routes" && route == nil:
		r.lines[name] = line
		r.list(n.Value())
	case slices.ContainsFunc(others, named), name == "routes":
		r.failAt(line, key, "%s", hint)
	case strings.HasPrefix(key, "routes.") && route == nil:
		r.bad["routes"] = true
		r.failAt(line, key, "write each route below a line [[routes]]")
	default:
		var known []string
		for _, f := range fields {
			known = append(known, f.key)
		}
		r.failAt(line, key, "unknown key; known here: %s", strings.Join(known, ", "))
	}
}
