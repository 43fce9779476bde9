// Command loadtest sends HTTP requests at a constant rate and says what their callers would have
// waited. It keeps to its schedule whatever the target does, so a target that stalls cannot slow the
// questions down and look good.
//
//	loadtest -c 100 -R 20000 -d 30s --latency --max-p99 5ms http://127.0.0.1:8080/svc-a
//
// Exit status: 0 pass, 1 a budget was missed, 2 usage, 3 invalid: nothing is known of the target.
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
	"syscall"

	"github.com/Bunty9/ferryman/loadtest/engine"
)

const (
	exitUsage   = 2
	exitInvalid = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program. It ends early, with a report, when ctx does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "healthcheck" {
		return healthcheck(ctx, args[1:], stderr)
	}
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "loadtest: %v\n", err)
		return exitUsage
	}
	code, err := test(ctx, o, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "loadtest: %v\n", err)
	}
	return code
}

// test runs the plan, with everything around it, and judges.
func test(ctx context.Context, o options, stdout, stderr io.Writer) (code int, err error) {
	runner, err := engine.New(o.plan)
	if err != nil {
		return exitUsage, err
	}
	// A loop that sleeps in the kernel must not take the processor of the goroutines beside it.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), runner.Loops()+2))
	files, err := o.outputs.open(stdout)
	if err != nil {
		return exitUsage, err
	}
	defer files.close()
	servers, err := startServers(o, runner, stderr)
	if err != nil {
		return exitUsage, err
	}
	defer servers.stop()
	watch := startWatch(runner, o.budgets, liveWriter(o, stderr))
	report, err := runner.Run(ctx)
	watch.stop()
	if err != nil {
		return exitInvalid, err
	}
	report.Judge(o.budgets, o.limits)
	if err := files.write(&report, o.spectrum, stdout, stderr); err != nil {
		return exitInvalid, fmt.Errorf("write the report: %w", err)
	}
	return report.Verdict.ExitCode(), nil
}
