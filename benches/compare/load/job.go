// Package load drives the load generator as a process of its own, so that its processor time is not
// the harness's, and so that one generator is alive from the first block to the last.
//
//	g, err := load.Start(ctx, executable, dir)  // runs "executable generator"
//	defer g.Stop()
//	outcome, err := g.Run(ctx, load.Job{URL: ..., Connections: 256, Warmup: ..., Duration: ...}, load.Hooks{})
//
// The other end is Serve, which reads jobs and runs the lab's own load tester.
package load

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

// Job is one block of load.
type Job struct {
	URL         string        `json:"url"`
	Method      string        `json:"method"`
	Body        []byte        `json:"body,omitempty"`
	Want        []byte        `json:"want"` // the one right body of an answer
	Rate        float64       `json:"rate"` // requests a second; 0: as many as there can be, a closed loop
	Connections int           `json:"connections"`
	Streams     int           `json:"streams"` // at a time on each HTTP/2 connection
	Warmup      time.Duration `json:"warmup"`  // over 0
	Duration    time.Duration `json:"duration"`
	NoKeepAlive bool          `json:"no_keep_alive"`
	HTTP2       bool          `json:"http2"`
	Roots       string        `json:"roots"` // PEM file with the certificate to trust
}

// Outcome is what became of a job's requests after the warm-up.
type Outcome struct {
	Seconds    float64          `json:"seconds"`
	Requests   int64            `json:"requests"`
	Right      int64            `json:"right"`           // answered correctly
	Wrong      map[string]int64 `json:"wrong"`           // the others by kind
	RightRate  float64          `json:"rate"`            // right answers per second
	Stolen     float64          `json:"stolen"`          // share of the machine's processor time
	CPUSeconds float64          `json:"cpu_s"`           // of the generator, warm-up included
	Invalid    []string         `json:"invalid"`         // why the generator itself distrusts the block
	LagP99     int64            `json:"send_lag_p99_us"` // how late it was while a connection was idle

	// Response times in microseconds from when a request was due; absent in a closed loop, where they
	// would mislead.
	Latency *Latency `json:"latency,omitempty"`
}

// Latency is a distribution of response times in microseconds.
type Latency struct {
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

// plan translates a job for the engine.
func (j Job) plan() (engine.Plan, error) {
	if j.Warmup <= 0 {
		return engine.Plan{}, errors.New("a job needs a warm-up")
	}
	p := engine.Plan{
		Targets: []engine.Target{{
			Request: wire.Request{Method: j.Method, URL: j.URL, Body: j.Body}, Status: 200, Expect: j.Want,
		}},
		Rate: j.Rate, Capacity: j.Rate == 0, Connections: j.Connections, Warmup: j.Warmup, Duration: j.Duration,
		NoKeepAlive: j.NoKeepAlive,
	}
	if j.HTTP2 {
		p.Protocol, p.Streams = engine.HTTP2, j.Streams
	}
	if j.Roots != "" {
		pem, err := os.ReadFile(j.Roots)
		if err != nil {
			return p, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return p, fmt.Errorf("no certificate in %s", j.Roots)
		}
		p.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	}
	return p, nil
}

// outcome takes what the comparison needs out of a report.
func outcome(r *result.Report) Outcome {
	r.Judge(result.Budgets{Errors: result.ErrorBudget{Any: true}}, result.Limits{})
	o := Outcome{
		Seconds: r.ElapsedS, Requests: r.Total.Requests, Right: r.Total.Classes[result.OK.String()], Wrong: map[string]int64{},
		RightRate: r.CompletedS, Stolen: r.Stolen, CPUSeconds: r.Cost.CPUSeconds, Invalid: r.Verdict.Reasons,
		LagP99: r.SendLag.P99US,
	}
	for class, n := range r.Total.Classes {
		if n > 0 && class != result.OK.String() {
			o.Wrong[class] = n
		}
	}
	if p := r.Total.Response; p != nil {
		o.Latency = &Latency{P50: p.P50US, P90: p.P90US, P99: p.P99US, P999: p.P999US, Max: p.MaxUS}
	}
	return o
}
