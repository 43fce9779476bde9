package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// event is a line from the generator to the harness.
type event struct {
	Kind    string   `json:"kind"`
	Error   string   `json:"error,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

const (
	begun    = "begun"    // the warm-up is over
	ended    = "ended"    // nothing is due any more
	reported = "reported" // with the outcome or an error: the job is over
)

// message is a line from the harness to the generator: a job, or the wish to end the one that runs.
type message struct {
	Job *Job `json:"job,omitempty"`
	Cut bool `json:"cut,omitempty"`
}

// server runs jobs one after the other.
type server struct {
	jobs    chan Job
	events  *json.Encoder
	failed  error                         // why reading ended; read it when jobs is closed
	running atomic.Pointer[engine.Runner] // nil between jobs
}

// Serve reads messages from in, runs the jobs among them, and tells on out how each goes. It returns
// nil at the end of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{jobs: make(chan Job), events: json.NewEncoder(out)}
	go s.read(in)
	for j := range s.jobs {
		last := event{Kind: reported}
		if o, err := s.run(ctx, j); err != nil {
			last.Error = err.Error()
		} else {
			last.Outcome = &o
		}
		if err := s.events.Encode(last); err != nil {
			return err
		}
	}
	return s.failed
}

func (s *server) read(in io.Reader) {
	defer close(s.jobs)
	for d := json.NewDecoder(in); ; {
		var m message
		if err := d.Decode(&m); err != nil {
			if err != io.EOF {
				s.failed = fmt.Errorf("read a message: %w", err)
			}
			s.cut()
			return
		}
		if m.Cut {
			s.cut()
		} else if m.Job != nil {
			s.jobs <- *m.Job
		}
	}
}

func (s *server) cut() {
	if r := s.running.Load(); r != nil {
		r.Stop()
	}
}

func (s *server) run(ctx context.Context, j Job) (Outcome, error) {
	plan, err := j.plan()
	if err != nil {
		return Outcome{}, err
	}
	runner, err := engine.New(plan)
	if err != nil {
		return Outcome{}, err
	}
	s.running.Store(runner)
	defer s.running.Store(nil)
	a := attempt{runner: runner, over: make(chan struct{})}
	go a.run(ctx)
	for _, moment := range []struct {
		kind string
		at   time.Duration
	}{{begun, 0}, {ended, j.Duration}} {
		if !a.reach(moment.at) && moment.kind == begun {
			break // it failed, or was cut; the end, though, may come with the last answer
		}
		if err := s.events.Encode(event{Kind: moment.kind}); err != nil {
			runner.Stop()
			<-a.over
			return Outcome{}, err
		}
	}
	<-a.over
	if a.err != nil {
		return Outcome{}, a.err
	}
	return outcome(&a.report), nil
}

// attempt is a run of the engine. What became of it may be read when over is closed.
type attempt struct {
	runner *engine.Runner
	over   chan struct{}
	report result.Report
	err    error
}

func (a *attempt) run(ctx context.Context) {
	defer close(a.over)
	a.report, a.err = a.runner.Run(ctx)
}

// reach waits until the run has come to a moment. It returns false if the run is over before.
func (a *attempt) reach(moment time.Duration) bool {
	const glance = 20 * time.Millisecond // while connections are made, the clock does not run yet
	for {
		left := moment - a.runner.Elapsed()
		if left <= 0 {
			return true
		}
		select {
		case <-a.over:
			return false
		case <-time.After(min(left, glance)):
		}
	}
}
