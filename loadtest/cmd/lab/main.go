//go:build unix

// Command lab is the helper behind the tasks of Taskfile.yml: it starts the lab, breaks it, shows it and
// measures it. `lab` alone lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit statuses beside 0 and 1.
const (
	exitUsage   = 2
	exitInvalid = 3 // measured, but the machine was too busy for the numbers to say anything
)

// lab is one call of the command.
type lab struct {
	root           string
	env            func(string) string
	stdout, stderr io.Writer
}

type command struct {
	name, args, help string
	min, max         int // number of arguments
	do               func(*lab, context.Context, []string) error
}

func commands() []command {
	return []command{
		{"demo", "", "start the lab as local processes", 0, 0, (*lab).demo},
		{"up", "", "start the lab as containers", 0, 0, (*lab).up},
		{"down", "", "end whichever runs", 0, 0, (*lab).down},
		{"urls", "", "where the lab listens", 0, 0, (*lab).urls},
		{"wait", "", "wait until the lab answers", 0, 0, (*lab).wait},
		{"status", "", "upstreams and their circuits", 0, 0, (*lab).status},
		{"watch", "", "transitions, faults and reloads as they happen", 0, 0, (*lab).watch},
		{"logs", "[NAME]", "what the programs print; FOLLOW=1 goes on", 0, 1, (*lab).logs},
		{"kill", "a|b|c", "kill an upstream", 1, 1, (*lab).kill},
		{"pause", "a|b|c", "stop an upstream where it is", 1, 1, (*lab).pause},
		{"slow", "a|b|c", "answers after LATENCY (3s)", 1, 1, (*lab).slow},
		{"errors", "a|b|c", "STATUS (503) for a share RATE (1) of requests; HEALTH=ok|fail|follow", 1, 1, (*lab).errors},
		{"heal", "a|b|c", "undo any fault", 1, 1, (*lab).heal},
		{"bench", "", "latency budgets, failover, memory; MODE, GENERATOR, RATE, SMOKE", 0, 0, (*lab).bench},
		{"verify", "[NN]", "the lab's promises and all lessons, or one lesson", 0, 1, (*lab).verify},
		{"doctor", "[demo|up]", "what is missing here, with its fix", 0, 1, (*lab).doctor},
		{"images", "", "build the images and print their variables", 0, 0, (*lab).images},
		{"dockerfiles", "", "really build each Dockerfile, with a stand-in for the Go image", 0, 0, (*lab).dockerfiles},
		{"lint", "", "every linter, results as a table", 0, 0, (*lab).lint},
		{"clean", "", "remove outputs, images and left-overs", 0, 0, (*lab).clean},
	}
}

// status is an error that only sets the exit status: everything was said.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// run is the program.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		if n := len(args) - 1; n < c.min || n > c.max {
			fmt.Fprintf(stderr, "usage: lab %s %s\n", c.name, c.args)
			return exitUsage
		}
		root, err := labenv.Root()
		if err == nil {
			l := &lab{root: root, env: env, stdout: stdout, stderr: stderr}
			err = c.do(l, ctx, args[1:])
		}
		var s status
		switch {
		case errors.As(err, &s):
			return int(s)
		case err != nil:
			fmt.Fprintf(stderr, "lab %s: %v\n", c.name, err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(stderr, "lab: there is no command %q; `lab` alone lists them\n", args[0])
	return exitUsage
}

func usage(w io.Writer) {
	for _, c := range commands() {
		fmt.Fprintf(w, "  lab %-11s %-10s %s\n", c.name, c.args, c.help)
	}
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.stdout, format+"\n", args...) }
