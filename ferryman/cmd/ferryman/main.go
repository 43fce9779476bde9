package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// version and commit are set by the linker where a release is built.
var version, commit string

func main() {
	// Output into a pipe that nobody reads any more must not end the proxy, nor may the prompt of
	// a demo in the background stop it (SIGTTIN, which package syscall lacks on Windows).
	signal.Ignore(syscall.SIGPIPE, syscall.Signal(21))
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program: its exit status is 0, 1 for trouble or 2 for a usage error. Cancelling ctx
// is like a first SIGTERM.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	p := &program{env: env, stdin: os.Stdin, stdout: stdout, stderr: stderr}
	return p.run(ctx, args)
}

// program is what a run has around it, and its settings.
type program struct {
	env            func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	lost           func() uint64 // lines of both that nobody was ready to read
	flush          func()        // ends both
	settings
}

func (p *program) run(ctx context.Context, args []string) int {
	command, err := p.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.stdout, usage())
		return 0
	case err != nil:
		fmt.Fprintf(p.stderr, "ferryman: %v; ferryman -h lists what there is\n", err)
		return 2
	}
	if command == "run" || command == "demo" {
		p.unblock()
		defer p.flush()
	}
	switch command {
	case "check":
		err = p.check()
	case "healthcheck":
		err = p.healthcheck(ctx)
	case "version":
		v, c := build()
		fmt.Fprintf(p.stdout, "ferryman %s, commit %s, %s %s/%s\n", v, c, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	case "demo":
		err = p.demo(ctx)
	default:
		err = p.serve(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) { // else it was told to end while it started
		p.complain(err)
		return 1
	}
	return 0
}

// complain prints one line, or one for each error of a configuration.
func (p *program) complain(err error) {
	var es config.Errors
	switch {
	case errors.Is(err, errSaid):
	case errors.As(err, &es) && es[0].Key == "" && es[0].Line == 0:
		fmt.Fprintf(p.stderr, "%v (--config names the file; without any, try ferryman demo)\n", err)
	case es != nil:
		fmt.Fprintln(p.stderr, err)
	default:
		fmt.Fprintln(p.stderr, "ferryman:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// errSaid is an error that was logged already.
var errSaid = errors.New("said")

// build is the version and the commit, from the linker or from what the toolchain noted down.
func build() (v, c string) {
	v, c = version, commit
	info, ok := debug.ReadBuildInfo()
	if ok && v == "" {
		v = info.Main.Version
	}
	for _, s := range append(info.Settings, debug.BuildSetting{Key: "vcs.revision", Value: "unknown"}) {
		if s.Key == "vcs.revision" && c == "" {
			c = s.Value
		}
	}
	return v, c
}
