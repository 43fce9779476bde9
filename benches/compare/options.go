package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/contender"
)

// options are what the command line says.
type options struct {
	quick      bool
	pairs      int
	block      time.Duration // least length of what is measured in a block
	contenders []string
	workloads  []string
	loads      []string
	repeats    int    // of a block that was disturbed
	out        string // folder; empty: no files
	ferryman   string // a binary to use instead of building one
	other      string // another build of it, to be compared too; empty: none
	echo       string
	args       []string
	gate       bool
}

const usage = `compare measures ferryman beside other proxies, over one upstream, in alternating pairs.

usage: compare [flags]          everything: takes over an hour, see --workloads and --quick
       compare gate [flags]     the regression gate: exit status 1 if a rule is broken
       compare fair [flags]     small requests beside a large download: exit status 1 if their p99 doubles

`

// errUsage is for what the flag package has told already.
var errUsage = errors.New("usage")

// parseOptions reads the flags of the comparison, or those of the gate, which differ in their defaults.
func parseOptions(gate bool, args []string, stderr io.Writer) (options, error) {
	o := options{args: args, gate: gate}
	var contenders, chosen, loads string
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.BoolVar(&o.quick, "quick", false, "a look, not a result: small answers, two pairs, blocks of a second")
	flags.IntVar(&o.pairs, "pairs", 10, "pairs a row; even, and at least 10 for what is published")
	flags.DurationVar(&o.block, "block", 1200*time.Millisecond, "least measured time of a block; it grows until a fifth of a second of processor time fits")
	flags.StringVar(&contenders, "contenders", "direct,floor,ferryman,nginx-tuned,nginx-default,haproxy,caddy", "who is compared; also: ferryman-goroutines")
	flags.StringVar(&chosen, "workloads", "", "which of "+strings.Join(names(), ",")+"; empty: all, or small if quick")
	flags.StringVar(&loads, "loads", light+","+heavy+","+saturated, "under which loads")
	flags.StringVar(&o.out, "out", ".lab/bench", "folder for report.json, report.md and report.svg; empty: none")
	flags.StringVar(&o.ferryman, "ferryman", "", "binary to measure; empty: build the tree's")
	flags.StringVar(&o.other, "other", "", "another build of ferryman, to be compared as ferryman-other")
	flags.StringVar(&o.echo, "echo", "", "binary of the upstream; empty: build the tree's")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, errUsage
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.contenders, o.workloads, o.loads = split(contenders), split(chosen), split(loads)
	return o, o.complete(flags)
}

// complete fills in what follows from other flags and refuses what cannot work.
func (o *options) complete(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.repeats = maxRepeats
	if o.gate {
		o.forGate(given)
	}
	if o.quick && !given["pairs"] && !o.gate {
		o.pairs = 2
	}
	if o.quick && !given["block"] && !o.gate {
		o.block = time.Second
	}
	for _, w := range workloads() {
		if !given["workloads"] && (w.quick || !o.quick) {
			o.workloads = append(o.workloads, w.name)
		}
	}
	if !slices.Contains(o.contenders, contender.Ferryman) {
		o.contenders = append(o.contenders, contender.Ferryman)
	}
	if o.other != "" && !slices.Contains(o.contenders, contender.Other) {
		o.contenders = append(o.contenders, contender.Other)
	}
	switch {
	case o.pairs < 2 || o.pairs%2 == 1:
		return fmt.Errorf("--pairs %d: it must be even, because blocks come as A B B A", o.pairs)
	case o.block < 200*time.Millisecond || o.block > time.Minute:
		return fmt.Errorf("--block %v: it is between 200ms and 1m", o.block)
	}
	for _, name := range o.workloads {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("--workloads %s: there are %s", name, strings.Join(names(), ", "))
		}
	}
	for _, name := range o.loads {
		if name != light && name != heavy && name != saturated {
			return fmt.Errorf("--loads %s: there are %s, %s and %s", name, light, heavy, saturated)
		}
	}
	_, err := contender.Pick(contender.All(contender.Programs{}), o.contenders)
	return err
}

// forGate are the defaults of the gate: what its rules need, in little time.
func (o *options) forGate(given map[string]bool) {
	if !given["contenders"] {
		o.contenders = []string{contender.Ferryman, contender.NginxTuned}
		all, _ := contender.Pick(contender.All(contender.Programs{}), o.contenders[1:])
		if !all[0].Found() {
			o.contenders = append(o.contenders, contender.Floor)
		}
	}
	if !given["loads"] {
		o.loads = []string{saturated}
	}
	if !given["pairs"] {
		o.pairs = 6
	}
	if !given["block"] {
		o.block = 1500 * time.Millisecond
	}
	o.quick, o.repeats = true, 0 // its time is limited
}

func names() (names []string) {
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

func split(list string) (items []string) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
