package engine

import (
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/Bunty9/ferryman/loadtest/pacer"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

// The executors that Plan.Executor may name.
const (
	Auto       = ""           // loops where they work, else goroutines
	Loops      = "loops"      // Linux, plaintext HTTP/1.1
	Goroutines = "goroutines" // everything
)

// The protocols that Plan.Protocol may name.
const (
	HTTP1 = "http/1.1" // also ""
	HTTP2 = "h2"       // over TLS for https:// targets, with prior knowledge (h2c) for http:// ones
)

// Plan is a load test. Targets, Rate (or Capacity) and Duration are required.
type Plan struct {
	Targets []Target // they share rate and connections evenly

	Rate     float64 // requests per second over all targets
	Capacity bool    // closed loop instead of a rate: how much can it take? No latencies then

	Connections int // over all targets; 0: 10
	Loops       int // 0: as few as the rate needs; in a closed loop, as many as processors
	Mode        pacer.Mode

	Duration time.Duration // of what is measured
	Warmup   time.Duration // before it, at the same rate; 0: none
	// Timeout is a request's limit from the moment it is sent; 0: 2 s. It also bounds how long the
	// run waits after its end for what is still out.
	Timeout time.Duration
	// RefusalLimit is how long the proxy's own 503 may take before it counts as bad; 0: 50 ms.
	RefusalLimit time.Duration

	NoKeepAlive bool // a connection per request
	Executor    string
	Protocol    string
	Streams     int         // requests at a time on an HTTP/2 connection; 0: 1
	TLS         *tls.Config // for https:// targets; nil: the system's roots. It is cloned

	// AllowRemote lets targets be neither loopback nor private. Load on machines of others is an
	// attack.
	AllowRemote bool
}

// Target is where requests go and what a right answer is.
type Target struct {
	wire.Request
	Name   string // in reports; "": the URL
	Status int    // the one right status; 0: any from 200 to 399
	// Body is the one right body; nil: any. Empty and not nil: no body.
	Expect []byte
}

// complete fills in defaults and refuses what cannot work.
func (p *Plan) complete() error {
	if p.Connections == 0 {
		p.Connections = 10
	}
	if p.Loops == 0 {
		p.Loops = p.fewestLoops()
	}
	if p.Timeout == 0 {
		p.Timeout = 2 * time.Second
	}
	if p.Protocol == "" {
		p.Protocol = HTTP1
	}
	if p.Streams == 0 {
		p.Streams = 1
	}
	switch {
	case len(p.Targets) == 0:
		return errors.New("no target")
	case p.Capacity && p.Rate != 0:
		return errors.New("a closed loop has no rate: give one of the two")
	case p.Duration <= 0:
		return fmt.Errorf("duration %v: it must be over 0", p.Duration)
	case p.Warmup < 0 || p.Timeout < 0 || p.RefusalLimit < 0:
		return errors.New("warm-up, timeout and refusal limit must not be negative")
	case p.Connections < 0 || p.Loops < 0 || p.Streams < 0:
		return errors.New("connections, loops and streams must not be negative")
	case p.Protocol != HTTP1 && p.Protocol != HTTP2:
		return fmt.Errorf("protocol %q: it is %s or %s", p.Protocol, HTTP1, HTTP2)
	case p.Protocol == HTTP2 && p.NoKeepAlive:
		return errors.New("a connection per request is for HTTP/1.1")
	case p.Protocol == HTTP1 && p.Streams > 1:
		return errors.New("streams are for HTTP/2")
	}
	return p.chooseExecutor()
}

// ratePerLoop is what one loop does with ease. Fewer loops wake less often and so cost less.
const ratePerLoop = 40_000

func (p *Plan) fewestLoops() int {
	n := runtime.NumCPU()
	if !p.Capacity {
		n = min(n, 1+int(p.Rate/ratePerLoop))
	}
	return max(1, min(n, p.Connections))
}

func (p *Plan) chooseExecutor() error {
	plain := p.Protocol == HTTP1
	for _, t := range p.Targets {
		u, err := wire.ParseURL(t.URL)
		if err != nil {
			return err
		}
		plain = plain && !u.TLS
	}
	switch {
	case p.Executor == Auto && haveLoops && plain:
		p.Executor = Loops
	case p.Executor == Auto:
		p.Executor = Goroutines
	case p.Executor == Loops && (!haveLoops || !plain):
		return errors.New("loops are for plaintext HTTP/1.1 on Linux")
	case p.Executor != Loops && p.Executor != Goroutines:
		return fmt.Errorf("executor %q: it is %s or %s", p.Executor, Loops, Goroutines)
	}
	if p.Executor == Goroutines {
		p.Loops = 1 // its lanes need no thread of their own: one pool for all
	}
	return nil
}

// schedule works out when requests are due. In a closed loop only its lanes matter.
func (p *Plan) schedule() (*pacer.Schedule, error) {
	plan := pacer.Plan{Rate: p.Rate, Targets: len(p.Targets), Connections: p.Connections, Loops: p.Loops, Mode: p.Mode}
	if p.Capacity {
		plan.Rate, plan.Mode = 1, pacer.Pinned
	}
	return pacer.New(plan)
}
