// Command redteam attacks a ferryman over loopback, as a process of its own, and says what that came to.
//
//	redteam run -plain ferryman -race ferryman-race   # every attack; exit status 1 if one gets through
//	redteam run -plain ferryman -only references -engine loops
//	redteam prove -module ferryman                    # each defence switched off once: its attack must get through
//	redteam list
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/Bunty9/ferryman/loadtest/redteam"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "redteam:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: redteam run|prove|list; run and prove have -h")

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("redteam "+args[0], flag.ContinueOnError)
	var only, engines []string
	list := func(to *[]string) func(string) error {
		return func(s string) error { *to = strings.Split(s, ","); return nil }
	}
	flags.Func("only", "names, with commas between them", list(&only))
	switch args[0] {
	case "run":
		s := redteam.Schedule{Self: self, Out: out}
		flags.StringVar(&s.Plain, "plain", "ferryman", "binary to attack")
		flags.StringVar(&s.Race, "race", "ferryman-race", "binary with the race detector, for the crossing tests")
		flags.Func("engine", "loops or goroutines (both, as it matters)", list(&engines))
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		s.Only, s.Engines = only, engines
		return s.Run(ctx)
	case "prove":
		p := &redteam.Proof{Self: self, Out: out}
		flags.StringVar(&p.Module, "module", "ferryman", "folder of the proxy's module")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		p.Only = only
		return p.Run(ctx)
	case "list":
		for _, a := range redteam.Attacks {
			fmt.Fprintf(out, "%-18s %s\n", a.Name, a.About)
		}
		return nil
	case "bystander": // run starts these
		return redteam.Bystand(in, out)
	}
	return errUsage
}
