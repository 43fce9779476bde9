package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/machine"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// page writes the text exposition format.
type page struct{ bytes.Buffer }

func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// single is a family with one series.
func (p *page) single(name, kind, help string, v float64) {
	p.family(name, kind, help)
	p.value(name, "", v)
}

func (p *page) value(name, labels string, v float64) {
	if labels != "" {
		name += "{" + labels + "}"
	}
	fmt.Fprintf(p, "%s %s\n", name, strconv.FormatFloat(v, 'g', -1, 64))
}

// histogram writes the buckets of one series; labels may be empty.
func (p *page) histogram(name, labels string, d result.Distribution) {
	comma := labels
	if comma != "" {
		comma += ","
	}
	for i, bound := range result.Bounds {
		// A bound has a decimal point: some versions of Prometheus add it, so that names would differ.
		le := strconv.FormatFloat(bound.Seconds(), 'f', -1, 64)
		if !strings.Contains(le, ".") {
			le += ".0"
		}
		p.value(name+"_bucket", comma+`le="`+le+`"`, float64(d.AtMost[i]))
	}
	p.value(name+"_bucket", comma+`le="+Inf"`, float64(d.Count))
	p.value(name+"_sum", labels, d.Sum.Seconds())
	p.value(name+"_count", labels, float64(d.Count))
}

func metricsHandler(o options, r *engine.Runner) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		p := &page{}
		p.single("loadtest_target_rate", "gauge", "Requests per second that are due, over all targets; 0 in a closed loop.", o.plan.Rate)
		p.single("loadtest_elapsed_seconds", "gauge", "Time since the end of the warm-up, negative within it.", r.Elapsed().Seconds())
		p.single("loadtest_connections", "gauge", "Connections that are established.", float64(r.OpenConnections()))
		p.single("loadtest_dials_total", "counter", "Connections that were tried.", float64(r.Dials()))
		p.single("loadtest_cpu_seconds_total", "counter", "Processor time of the generator.", machine.ProcessTime().Seconds())
		p.outcomes(r.Collector().Peek())
		p.times(r.Collector())
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(p.Bytes()) // the scraper left: nothing to do
	})
	return mux
}

func (p *page) outcomes(l result.Live) {
	p.family("loadtest_requests_total", "counter", "Requests by target and outcome.")
	for _, t := range l.Targets {
		for class, n := range t.Classes {
			p.value("loadtest_requests_total", fmt.Sprintf("target=%s,class=%q", quoted(t.Name), result.Class(class)), float64(n))
		}
	}
	p.family("loadtest_answers_total", "counter", "Answers by target and status.")
	for _, t := range l.Targets {
		for status, n := range t.Statuses {
			p.value("loadtest_answers_total", fmt.Sprintf("target=%s,status=\"%d\"", quoted(t.Name), status), float64(n))
		}
	}
	p.family("loadtest_bad_requests_total", "counter", "Requests without a right answer or a refusal in time.")
	for _, t := range l.Targets {
		p.value("loadtest_bad_requests_total", "target="+quoted(t.Name), float64(t.Bad))
	}
}

func (p *page) times(c *result.Collector) {
	response, service, lag := c.Distributions()
	names := c.Targets()
	p.family("loadtest_response_seconds", "histogram", "Response time: done - intended. What a caller waits.")
	for i, d := range response {
		p.histogram("loadtest_response_seconds", "target="+quoted(names[i]), d)
	}
	p.family("loadtest_service_seconds", "histogram", "Service time: done - sent. It hides the time in the queue.")
	for i, d := range service {
		p.histogram("loadtest_service_seconds", "target="+quoted(names[i]), d)
	}
	p.family("loadtest_send_lag_seconds", "histogram", "How late the generator sent while a connection was idle.")
	p.histogram("loadtest_send_lag_seconds", "", lag)
}

// quoted is a label's value: backslash, quote and line feed are escaped, nothing else.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
