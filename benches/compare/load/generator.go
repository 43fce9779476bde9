package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/proc"
)

// Generator is a running load generator. One job at a time.
type Generator struct {
	process *proc.Process
	jobs    io.WriteCloser
	events  chan event // closed when the generator has ended
}

// Command is the argument that makes the harness's own executable call Serve.
const Command = "generator"

// Start starts the generator. Stop must be called.
func Start(executable, dir string) (*Generator, error) {
	cmd := exec.Command(executable, Command)
	jobs, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: that one may be closed before it is read to its end.
	lines, out := io.Pipe()
	cmd.Stdout = out
	p, err := proc.Start(Command, cmd, dir)
	if err != nil {
		return nil, err
	}
	g := &Generator{process: p, jobs: jobs, events: make(chan event, 8)}
	go g.read(lines)
	go closeAfter(out, p.Exited())
	return g, nil
}

// closeAfter ends what the generator wrote when it has ended.
func closeAfter(out io.Closer, exited <-chan struct{}) {
	<-exited
	out.Close()
}

func (g *Generator) read(lines io.Reader) {
	defer close(g.events)
	for d := json.NewDecoder(lines); ; {
		var e event
		if d.Decode(&e) != nil {
			return
		}
		g.events <- e
	}
}

// PIDs are the generator's processes.
func (g *Generator) PIDs() []int { return proc.Tree(g.process.PID()) }

// Stop ends the generator.
func (g *Generator) Stop() {
	g.jobs.Close()
	g.process.Stop(time.Second)
}

func (g *Generator) send(m message) error { return json.NewEncoder(g.jobs).Encode(m) }

// Cut ends the job that runs before its time. It is for a hook to call.
func (g *Generator) Cut() error { return g.send(message{Cut: true}) }

// Hooks are called while a job runs. Nil ones are not.
type Hooks struct {
	Begun func() // the warm-up is over
	Ended func() // nothing is due any more; answers may still be out
}

// patience is what a job may take beyond its duration: connecting, and the last answers.
const patience = 30 * time.Second

var errGone = errors.New("the load generator has ended")

// Run runs a job and returns what became of it. After an error the generator is of no more use.
func (g *Generator) Run(ctx context.Context, j Job, h Hooks) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Warmup+j.Duration+patience)
	defer cancel()
	if err := g.send(message{Job: &j}); err != nil {
		return Outcome{}, fmt.Errorf("%w: %w: %s", errGone, err, g.process.Tail())
	}
	for {
		select {
		case <-ctx.Done():
			return Outcome{}, fmt.Errorf("load on %s: %w", j.URL, ctx.Err())
		case e, ok := <-g.events:
			switch {
			case !ok:
				return Outcome{}, fmt.Errorf("%w: %s", errGone, g.process.Tail())
			case e.Error != "":
				return Outcome{}, errors.New(e.Error)
			case e.Outcome != nil:
				return *e.Outcome, nil
			case e.Kind == begun && h.Begun != nil:
				h.Begun()
			case e.Kind == ended && h.Ended != nil:
				h.Ended()
			}
		}
	}
}
