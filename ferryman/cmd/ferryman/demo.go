package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// demo is three upstreams that a person stops and starts, at a prompt or over HTTP.
type demo struct {
	upstreams      []*upstream
	proxy, metrics string // URLs
}

// demo runs the proxy over upstreams in this process.
func (p *program) demo(ctx context.Context) error {
	s := p.newService()
	ctx, stop := s.listenToSignals(ctx)
	defer stop()
	defer s.close()
	c := config.Default()
	c.HealthInterval, c.HealthTimeout = 2*time.Second, time.Second // pleasant to watch
	d := &demo{}
	for _, name := range []string{"a", "b", "c"} {
		u := &upstream{name: name, addr: "127.0.0.1:0"}
		if err := u.start(); err != nil {
			return err
		}
		defer u.stop()
		d.upstreams = append(d.upstreams, u)
		c.Routes = append(c.Routes, config.Route{Prefix: "/svc-" + name, Upstream: u.addr})
	}
	var err error
	if s.front, err = p.listenDemo(ctx, "bind"); err != nil {
		return err
	}
	if s.metrics, err = p.listenDemo(ctx, "metrics-bind"); err != nil {
		return err
	}
	if s.proxy, err = p.newProxy(c, s.log); err != nil {
		return err
	}
	s.admin = d.handler(s.proxy.MetricsHandler())
	d.proxy = "http://" + reachable(s.front.Addr().String())
	d.metrics = "http://" + reachable(s.metrics.Addr().String())
	d.introduce(p.stdout, c)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go d.prompt(p.stdin, p.stdout, cancel) // nobody waits: a read from a terminal cannot be ended
	return s.run(ctx)
}

// listenDemo takes any free port where nobody asked for a certain one and the usual one is busy.
func (p *program) listenDemo(ctx context.Context, flag string) (net.Listener, error) {
	if s := p.find(flag); s.given {
		return listen(ctx, flag, s.value)
	}
	addr := strings.Replace(p.get(flag), "0.0.0.0", "127.0.0.1", 1)
	l, err := listen(ctx, flag, addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		fmt.Fprintf(p.stdout, "%s is in use, so this demo takes another port (--%s asks for one)\n", addr, flag)
		return listen(ctx, flag, "127.0.0.1:0")
	}
	return l, err
}

func (d *demo) introduce(w io.Writer, c config.Config) {
	fmt.Fprintf(w, "proxy on %s, metrics on %s/metrics\n", d.proxy, d.metrics)
	for i, r := range c.Routes {
		fmt.Fprintf(w, "  %s -> upstream %s on %s\n", r.Prefix, d.upstreams[i].name, r.Upstream)
	}
	fmt.Fprintf(w, "a circuit opens after %d failures, for %v; health checks run every %v and close it at once\n\n",
		c.FailureThreshold, c.DefaultCooldown, c.HealthInterval)
	fmt.Fprintln(w, "try, in another terminal:")
	for _, try := range [][2]string{
		{"curl -i " + d.proxy + "/svc-a/hello", "upstream a says what it saw"},
		{"curl -X POST " + d.metrics + "/demo/stop/a", "or type here: stop a"},
		{"curl -i " + d.proxy + "/svc-a/hello", "502, soon 503; /svc-b does not notice"},
		{"curl -X POST " + d.metrics + "/demo/start/a", "the route is back within the interval"},
		{"curl -s " + d.metrics + "/metrics", "ferryman_circuit_state and more"},
	} {
		fmt.Fprintf(w, "  %-55s # %s\n", try[0], try[1])
	}
	fmt.Fprintf(w, "commands here: %s; Ctrl-C ends the demo\n", demoCommands)
}

const demoCommands = "stop a, start a, status, help, quit"

// prompt obeys lines of in until it ends, which leaves the demo running.
func (d *demo) prompt(in io.Reader, out io.Writer, quit func()) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch words := strings.Fields(lines.Text()); {
		case len(words) == 0:
		case words[0] == "quit":
			quit()
			return
		case words[0] == "status":
			fmt.Fprint(out, d.status())
		default:
			if text, err := d.do(words); err == nil {
				fmt.Fprint(out, text)
				continue
			}
			fmt.Fprintln(out, "commands:", demoCommands)
		}
	}
}

var errNoCommand = errors.New("say start or stop, and a, b or c")

// do stops or starts an upstream.
func (d *demo) do(words []string) (said string, err error) {
	if len(words) != 2 {
		return "", errNoCommand
	}
	for _, u := range d.upstreams {
		switch {
		case u.name != words[1]:
		case words[0] == "stop":
			u.stop()
			return fmt.Sprintf("%s is stopped: curl -i %s/svc-%[1]s/\n", u.name, d.proxy), nil
		case words[0] == "start":
			if err := u.start(); err != nil {
				return fmt.Sprintf("%s cannot start: %v\n", u.name, err), nil
			}
			return fmt.Sprintf("%s is running\n", u.name), nil
		}
	}
	return "", errNoCommand
}

// status shows each upstream beside what the proxy thinks of it, read from its metrics.
func (d *demo) status() string {
	circuits := map[string]string{}
	if resp, err := http.Get(d.metrics + "/metrics"); err == nil {
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			rest, ok := strings.CutPrefix(lines.Text(), `ferryman_circuit_state{upstream="`)
			if addr, state, _ := strings.Cut(rest, `"} `); ok {
				circuits[addr] = map[string]string{"0": "closed", "1": "open", "2": "half_open"}[state]
			}
		}
	}
	var b strings.Builder
	for _, u := range d.upstreams {
		fmt.Fprintf(&b, "%s  %-8s circuit %s\n", u.name, u.state(), circuits[u.addr])
	}
	return b.String()
}

// handler adds the demo's calls to the metrics listener.
func (d *demo) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", metrics)
	mux.HandleFunc("GET /demo/status", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, d.status()) })
	mux.HandleFunc("POST /demo/{verb}/{name}", func(w http.ResponseWriter, r *http.Request) {
		text, err := d.do([]string{r.PathValue("verb"), r.PathValue("name")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		io.WriteString(w, text)
	})
	return mux
}
