package result

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/Bunty9/ferryman/loadtest/machine"
	"github.com/HdrHistogram/hdrhistogram-go"
)

// Schema is the version of the JSON that Report.WriteJSON writes.
const Schema = 1

// The values of Report.Kind.
const (
	// OpenLoop is a run at a fixed rate: latencies mean what a caller would see.
	OpenLoop = "open"
	// Capacity is a closed loop: each connection sends as soon as it has its answer. It measures how
	// many requests a second the target can do and says nothing about latency.
	Capacity = "capacity"
)

// Report is a finished run.
type Report struct {
	Schema    int       `json:"schema"`
	Generator string    `json:"generator"`
	Kind      string    `json:"kind"`
	Started   time.Time `json:"started"` // of the schedule, warm-up included
	Setup     Setup     `json:"setup"`

	// ElapsedS is how long requests were measured, in seconds: the duration, or less if stopped.
	ElapsedS    float64 `json:"elapsed_s"`
	Interrupted bool    `json:"interrupted,omitempty"`
	Planned     int64   `json:"planned"`       // requests that were due; in a closed loop, those done
	AchievedS   float64 `json:"achieved_rate"` // requests that were sent, per second
	CompletedS  float64 `json:"ok_rate"`       // right answers per second

	Total   Outcome   `json:"total"`
	Targets []Outcome `json:"targets"`
	// SendLag is how late the generator was while a connection was idle: its own fault.
	SendLag Percentiles `json:"send_lag"`

	Connections ConnectionCounts    `json:"connections"`
	Cost        Cost                `json:"generator_cost"`
	Machine     machine.Environment `json:"machine"`
	Stolen      float64             `json:"stolen_share"` // of the machine's processor time
	Marks       []Mark              `json:"marks,omitempty"`
	Timeline    Timeline            `json:"timeline"`
	Budgets     []BudgetLine        `json:"budgets,omitempty"`
	Verdict     Verdict             `json:"verdict"`

	response, service *hdrhistogram.Histogram // over all targets
}

// Setup is what was asked for.
type Setup struct {
	Rate        float64  `json:"rate"`
	Connections int      `json:"connections"`
	Loops       int      `json:"loops"`
	DurationS   float64  `json:"duration_s"`
	WarmupS     float64  `json:"warmup_s"`
	TimeoutS    float64  `json:"timeout_s"`
	RefusalMS   float64  `json:"refusal_limit_ms"`
	Mode        string   `json:"mode"`     // pinned or pool
	Engine      string   `json:"engine"`   // loops or goroutines
	Protocol    string   `json:"protocol"` // http/1.1, h2 or h2c, with TLS where it is used
	KeepAlive   bool     `json:"keep_alive"`
	URLs        []string `json:"urls"`
}

// Outcome is what became of the requests to one target, or to all.
type Outcome struct {
	Name     string           `json:"name"`
	Requests int64            `json:"requests"`
	Classes  map[string]int64 `json:"classes"` // every class, zero or not
	Statuses map[int]int64    `json:"statuses"`
	Bytes    int64            `json:"bytes"` // of answers, heads included
	Unsent   int64            `json:"unsent,omitempty"`

	// Bad requests are all but right answers and refusals in time. Times are seconds since the end
	// of the warm-up at which they were due; absent if there was none.
	Bad       int64    `json:"bad"`
	FirstBadS *float64 `json:"first_bad_s,omitempty"`
	LastBadS  *float64 `json:"last_bad_s,omitempty"`

	// Nil in a closed loop, where they would mislead.
	Response *Percentiles `json:"response,omitempty"` // done - intended
	Service  *Percentiles `json:"service,omitempty"`  // done - sent
}

// ConnectionCounts tell how the connections fared.
type ConnectionCounts struct {
	Asked       int   `json:"asked"`
	Established int   `json:"established"` // when the schedule began
	Dials       int64 `json:"dials"`       // in all
	// Unsolicited bytes came while no request was out: an answer longer than it said, or one too
	// many. Each time the connection was closed.
	Unsolicited int64 `json:"unsolicited"`
}

// Cost is what the generator itself used.
type Cost struct {
	CPUSeconds   float64 `json:"cpu_s"`              // of the process, from the schedule's start to its end
	CPUPerReqUS  float64 `json:"cpu_per_request_us"` // of all requests, warm-up included
	LoopSeconds  float64 `json:"loop_cpu_s"`         // of the loops alone; 0 where it is not known
	LoopPerReqUS float64 `json:"loop_cpu_per_request_us"`
}

// Mark is a moment noted by the generator's own clock.
type Mark struct {
	Name string  `json:"name"`
	AtS  float64 `json:"at_s"` // seconds since the end of the warm-up; negative within it
}

// Report makes the report of what was counted. The caller fills in what only the engine knows. The
// loops must have ended; elapsed is how long they measured.
func (c *Collector) Report(kind string, elapsed time.Duration) Report {
	lines := c.finish()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{
		Schema: Schema, Generator: "loadtest", Kind: kind, ElapsedS: elapsed.Seconds(), SendLag: percentiles(c.lag),
		Timeline: Timeline{BucketMS: float64(widthFor(c.layout.Duration)) / 1e6},
	}
	for i, t := range c.totals {
		r.Targets = append(r.Targets, t.outcome(c.layout.Targets[i], kind))
		r.Timeline.Targets = append(r.Timeline.Targets, lines[i].columns(c.layout.Targets[i], elapsed))
	}
	r.Total = c.all.outcome("all", kind)
	r.response, r.service = c.all.response, c.all.service
	r.Planned = r.Total.Requests
	if elapsed > 0 {
		r.AchievedS = float64(r.Total.Requests-r.Total.Unsent) / elapsed.Seconds()
		r.CompletedS = float64(c.all.classes[OK]) / elapsed.Seconds()
	}
	return r
}

func (t *tally) outcome(name, kind string) Outcome {
	o := Outcome{
		Name: name, Requests: t.requests(), Classes: map[string]int64{}, Statuses: t.byStatus(), Bytes: t.bytes,
		Unsent: t.unsent, Bad: t.bad, FirstBadS: seconds(t.firstBad), LastBadS: seconds(t.lastBad),
	}
	for class, n := range t.classes {
		o.Classes[Class(class).String()] = n
	}
	if kind == OpenLoop {
		response, service := percentiles(t.response), percentiles(t.service)
		o.Response, o.Service = &response, &service
	}
	return o
}

// Errors are the requests without a right answer.
func (o Outcome) Errors() int64 { return o.Requests - o.Classes[OK.String()] }

func seconds(d time.Duration) *float64 {
	if d == never {
		return nil
	}
	s := d.Seconds()
	return &s
}

// WriteJSON writes the report as one line.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteHGRM writes the response times in the format that HdrHistogram's plotters read, values in
// milliseconds. It fails for a report that was read from JSON.
func (r *Report) WriteHGRM(w io.Writer) error {
	if r.response == nil {
		return errors.New("no histogram: JSON holds percentiles only")
	}
	_, err := r.response.PercentilesPrint(w, 5, 1000)
	return err
}
