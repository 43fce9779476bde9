// Package report holds what a comparison measured, sums it up, judges it, and writes it as JSON, as a
// Markdown table and as a picture. It measures nothing.
package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/stats"
	"github.com/Bunty9/ferryman/loadtest/machine"
)

// Schema is the version of the JSON.
const Schema = 1

// Run is a whole comparison: raw blocks first, sums behind them.
type Run struct {
	Schema    int                 `json:"schema"`
	Started   time.Time           `json:"started"`
	Seconds   float64             `json:"seconds"`
	Commit    string              `json:"commit"` // of the tree that was measured; with "+" if it had changes
	Command   []string            `json:"command"`
	Machine   machine.Environment `json:"machine"`
	LoadAfter float64             `json:"load_average_after"`
	Tracer    string              `json:"tracer"` // what counted system calls; empty: nothing could
	Reference string              `json:"reference"`
	Pairs     int                 `json:"pairs"`

	Contenders []Contender `json:"contenders"` // in the order of the report
	Sections   []Section   `json:"sections"`
}

// Contender is who was to be compared.
type Contender struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version,omitempty"`
	Process bool   `json:"process"` // there is one, with processor time and memory to read
	// Missing says why it was not compared at all; empty: it was.
	Missing string `json:"missing,omitempty"`
}

// Section is one workload under one load.
type Section struct {
	Workload    string  `json:"workload"`
	Title       string  `json:"title"`
	Load        string  `json:"load"`
	Rate        float64 `json:"rate"` // requests a second; 0: closed loop, as many as there can be
	Connections int     `json:"connections"`
	Streams     int     `json:"streams,omitempty"`

	// Absent are contenders that do not take part here, with the reason.
	Absent map[string]string `json:"absent,omitempty"`
	Blocks []Block           `json:"blocks"`
	Probes []Probe           `json:"probes,omitempty"`
	Rows   []Row             `json:"rows"`
}

// Block is one uninterrupted measurement of one contender.
type Block struct {
	Contender string       `json:"contender"`
	Against   string       `json:"against"` // the other one of the pair
	Pair      int          `json:"pair"`    // from 0, within the two
	AtS       float64      `json:"at_s"`    // since the start of the run
	Outcome   load.Outcome `json:"outcome"`

	WindowS      float64 `json:"window_s"` // between the two readings of the processor time
	CPUS         float64 `json:"cpu_s"`    // of the contender in the window
	UpstreamS    float64 `json:"upstream_cpu_s"`
	PSSKiB       int64   `json:"pss_kib"`
	StolenShare  float64 `json:"stolen"`  // in the window
	ForeignShare float64 `json:"foreign"` // of the processors, used by programs that do not belong here
	// Repeated counts the blocks that were thrown away before this one, because the hypervisor or other
	// programs took too much.
	Repeated int `json:"repeated,omitempty"`
	// Refused says why the block does not count; empty: it does.
	Refused string `json:"refused,omitempty"`
}

// CPUPerRequest is the contender's processor time per right answer in microseconds.
func (b Block) CPUPerRequest() float64 {
	if b.WindowS <= 0 || b.Outcome.RightRate <= 0 {
		return 0
	}
	return b.CPUS / b.WindowS / b.Outcome.RightRate * 1e6
}

// What others may take of the machine before a block counts as disturbed, as shares of its processors.
const (
	maxStolen  = 0.01 // the hypervisor
	maxForeign = 0.10 // other programs; counting in ticks is off by some hundredths
)

// Disturbed reports whether others took so much of the machine that the block should be measured again.
func (b Block) Disturbed() bool { return b.StolenShare > maxStolen || b.ForeignShare > maxForeign }

// The kinds of Probe.
const (
	SystemCalls = "syscalls"
	Allocations = "allocations"
)

// Probe counted something while the contender was saturated.
type Probe struct {
	Contender string           `json:"contender"`
	Kind      string           `json:"kind"`
	Requests  int64            `json:"requests"`
	Count     float64          `json:"count"` // without what counting costs; below 0 where counts come in lots
	ByName    map[string]int64 `json:"by_name,omitempty"`
}

// Row is what a contender's blocks and probes come to.
type Row struct {
	Contender   string        `json:"contender"`
	CPU         stats.Summary `json:"cpu_us_per_request"`
	Rate        stats.Summary `json:"requests_per_s"`
	P50, P99    stats.Summary // microseconds
	MemoryMiB   stats.Summary `json:"pss_mib"`
	SystemCalls stats.Summary `json:"syscalls_per_request"`
	Allocations stats.Summary `json:"allocations_per_request"`

	// Of the reference against this contender, from pairs.
	CPURatio  stats.Summary `json:"reference_cpu_ratio"`
	RateRatio stats.Summary `json:"reference_rate_ratio"`
	AddedP50  stats.Summary `json:"reference_p50_minus_this_us"`
	AddedP99  stats.Summary `json:"reference_p99_minus_this_us"`

	Blocks   int    `json:"blocks"` // that count
	Repeated int    `json:"repeated,omitempty"`
	Note     string `json:"note,omitempty"`
}

// WriteJSON writes the run as one indented object.
func (r *Run) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// ReadJSON is the other way round.
func ReadJSON(r io.Reader) (*Run, error) {
	run := &Run{}
	return run, json.NewDecoder(r).Decode(run)
}
