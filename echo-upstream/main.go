// Command echo-upstream is the upstream of the lab around ferryman: it answers, describes what
// reached it, and fails on request. Package echo says how.
//
//	echo-upstream --data-bind :8000 --admin-bind :8001 --instance a
//	curl -X PUT localhost:8001/fault -d '{"latency":"3s"}'
//	echo-upstream healthcheck --admin-bind :8001
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/echo-upstream/echo"
)

// stopTimeout is how long a stop waits for answers in flight.
const stopTimeout = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

type options struct {
	data, admin, instance string
}

// run is the program: 0 after a clean stop, 1 on trouble, 2 on a usage error.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	check := len(args) > 0 && args[0] == "healthcheck"
	if check {
		args = args[1:]
	}
	o, code, ok := parse(args, stderr)
	if !ok {
		return code
	}
	do := serve
	if check {
		do = healthcheck
	}
	if err := do(ctx, o, stderr); err != nil {
		fmt.Fprintln(stderr, "echo-upstream:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, code int, ok bool) {
	host, _ := os.Hostname() // without one the flag has to name the instance
	flags := flag.NewFlagSet("echo-upstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.data, "data-bind", ":8000", "address of the data port")
	flags.StringVar(&o.admin, "admin-bind", ":8001", "address of the admin port: /fault, /metrics, /healthz")
	flags.StringVar(&o.instance, "instance", host, "name that every answer carries in "+echo.InstanceField)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, 0, false
		}
		return o, 2, false
	}
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "echo-upstream: unexpected argument %q: there are flags and the subcommand healthcheck\n", flags.Arg(0))
		return o, 2, false
	case !fieldValue(o.instance):
		fmt.Fprintln(stderr, "echo-upstream: --instance must be printable ASCII without spaces, such as a")
		return o, 2, false
	}
	return o, 0, true
}

// fieldValue reports whether name can stand in a header field as it is.
func fieldValue(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return name != ""
}

func serve(ctx context.Context, o options, stderr io.Writer) error {
	data, err := listen(ctx, o.data, "--data-bind")
	if err != nil {
		return err
	}
	admin, err := listen(ctx, o.admin, "--admin-bind")
	if err != nil {
		_ = data.Close()
		return err
	}
	s := echo.New(echo.Options{Instance: o.instance})
	failed := make(chan error, 2)
	go deliver(failed, s.ServeData, data)
	go deliver(failed, s.ServeAdmin, admin)
	fmt.Fprintf(stderr, "echo-upstream %s: data %s, admin %s\n", o.instance, data.Addr(), admin.Addr())
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	limit, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(err, s.Shutdown(limit))
}

// deliver sends how serving l ended; Shutdown ends both.
func deliver(failed chan<- error, serve func(net.Listener) error, l net.Listener) { failed <- serve(l) }

func listen(ctx context.Context, addr, flagName string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1}
	config.SetMultipathTCP(false) // Go's default costs a data copy that an upstream for measuring must not pay
	l, err := config.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use: stop the other program or pass %s", addr, flagName)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: pass another %s", addr, err, flagName)
	}
	return l, nil
}

// healthcheck asks the admin port of a running instance, for containers without a shell.
func healthcheck(ctx context.Context, o options, _ io.Writer) error {
	host, port, err := net.SplitHostPort(o.admin)
	if err != nil {
		return fmt.Errorf("--admin-bind %q is no host:port", o.admin)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("no answer from the admin port: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the admin port answered %s", response.Status)
	}
	return nil
}
