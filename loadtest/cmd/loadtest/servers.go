package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// servers are the listeners beside a run.
type servers struct {
	all    []*http.Server
	done   chan error
	stderr io.Writer
}

func startServers(o options, r *engine.Runner, stderr io.Writer) (*servers, error) {
	s := &servers{done: make(chan error, 2), stderr: stderr}
	for _, x := range []struct {
		name, bind string
		handler    http.Handler
	}{{"--metrics-bind", o.metricsBind, metricsHandler(o, r)}, {"--control", o.control, controlHandler(r)}} {
		if x.bind == "" {
			continue
		}
		l, err := net.Listen("tcp", x.bind)
		if err != nil {
			s.stop()
			if errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("%s is in use: stop the other program or pass another %s", x.bind, x.name)
			}
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
		server := &http.Server{Handler: x.handler, ReadHeaderTimeout: 10 * time.Second}
		s.all = append(s.all, server)
		go s.serve(server, l)
	}
	return s, nil
}

func (s *servers) serve(server *http.Server, l net.Listener) { s.done <- server.Serve(l) }

// stop answers what is in flight, for at most a second, and ends the listeners.
func (s *servers) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range s.all {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(s.stderr, "loadtest: a listener ended early: %v\n", err)
		}
	}
}

// markName keeps marks printable in every output.
var markName = regexp.MustCompile(`^[A-Za-z0-9._:+-]{1,64}$`)

// status is what GET /status tells.
type status struct {
	ElapsedS float64        `json:"elapsed_s"` // since the end of the warm-up; negative within it
	Requests int64          `json:"requests"`
	Errors   int64          `json:"errors"`
	Bad      int64          `json:"bad"`
	Targets  []targetStatus `json:"targets"`
}

type targetStatus struct {
	Name     string           `json:"name"`
	Classes  map[string]int64 `json:"classes"`
	Bad      int64            `json:"bad"`
	LastBadS *float64         `json:"last_bad_s,omitempty"` // when it was due
}

func controlHandler(r *engine.Runner) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mark/{name}", func(w http.ResponseWriter, request *http.Request) {
		name := request.PathValue("name")
		if !markName.MatchString(name) {
			http.Error(w, "a mark is up to 64 letters, digits and . _ : + -", http.StatusBadRequest)
			return
		}
		reply(w, r.Mark(name))
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		r.Stop()
		reply(w, map[string]bool{"stopping": true})
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, newStatus(r.Elapsed(), r.Collector().Peek()))
	})
	mux.HandleFunc("GET /healthz", healthy)
	return mux
}

func healthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller left: nothing to do
}

func newStatus(elapsed time.Duration, l result.Live) status {
	s := status{ElapsedS: elapsed.Seconds(), Requests: l.Requests, Errors: l.Errors, Bad: l.Bad}
	for _, t := range l.Targets {
		x := targetStatus{Name: t.Name, Classes: map[string]int64{}, Bad: t.Bad}
		for class, n := range t.Classes {
			x.Classes[result.Class(class).String()] = n
		}
		if t.LastBad >= 0 {
			at := t.LastBad.Seconds()
			x.LastBadS = &at
		}
		s.Targets = append(s.Targets, x)
	}
	return s
}

// healthcheck asks the metrics or control listener of a running one, for containers without a shell.
func healthcheck(ctx context.Context, args []string, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "loadtest: healthcheck takes the address of --control or --metrics-bind")
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+args[0]+"/healthz", nil)
	if err != nil {
		fmt.Fprintf(stderr, "loadtest: %v\n", err)
		return exitUsage
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Fprintf(stderr, "loadtest: no answer: %v\n", err)
		return 1
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		fmt.Fprintf(stderr, "loadtest: %s answered %s\n", args[0], response.Status)
		return 1
	}
	return 0
}
