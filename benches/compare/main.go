// Command compare measures ferryman beside NGINX, HAProxy, Caddy and a relay that parses nothing: one
// upstream, one load generator, alternating pairs of blocks. docs/benchmarks.md explains the method.
//
//	go run ./benches/compare --quick
//	go run ./benches/compare --workloads small,tls
//	go run ./benches/compare gate
//	go run ./benches/compare fair
//
// It starts and ends everything itself, on loopback, and needs no root, though counting system calls
// may need the right to trace. It does not tune the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/Bunty9/ferryman/benches/compare/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program: 0 if all went well, 1 if not or if the gate is broken, 2 on a usage error.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	command, gate := compare, false
	if len(args) > 0 {
		switch args[0] {
		case load.Command:
			// A signal is meant for the harness: it ends its generator when it needs it no more.
			if err := load.Serve(context.WithoutCancel(ctx), stdin, stdout); err != nil {
				fmt.Fprintln(stderr, "generator:", err)
				return 1
			}
			return 0
		case "gate":
			command, gate, args = runGate, true, args[1:]
		case "fair":
			command, args = runFair, args[1:]
		}
	}
	o, err := parseOptions(gate, args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		fmt.Fprintln(stderr, "compare:", err)
		return 2
	}
	if err := command(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 1
	}
	return 0
}
