package redteam

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	warmUp      = 300 * time.Millisecond
	undisturbed = 700 * time.Millisecond
	leastDuring = 500 * time.Millisecond // that the bystander is listened to
	noticing    = 3 * time.Second        // that a client has left
)

// Run has one attack take place. An error is ours; what is wrong with ferryman is in the verdict, which comes once
// its memory is back or cooling is over.
func Run(ctx context.Context, a Attack, t Target) (*Verdict, error) {
	finish, err := Begin(ctx, a, t)
	if err != nil {
		return nil, err
	}
	return finish()
}

// Begin is Run up to the attackers' leaving. What it returns waits for the memory and then ends ferryman: the next
// attack may begin meanwhile, for little is done by then.
func Begin(ctx context.Context, a Attack, t Target) (finish func() (*Verdict, error), err error) {
	s, err := set(ctx, a, t)
	if err != nil {
		return nil, err
	}
	attacking, cancel := context.WithTimeout(ctx, a.limit())
	defer cancel()
	p, v := s.p, &Verdict{Attack: a.Name, Engine: t.Engine}
	r := &rig{ctx: attacking, addr: p.addr, secure: a.Secure, up: s.up, pid: p.pid(), faults: s.faults}
	quiet := time.Now().Add(warmUp)
	if !a.Alone {
		pause(ctx, warmUp+undisturbed)
	}
	before, begun := look(p.pid()), time.Now()
	g := guardMemory(p, cancel)
	if err := a.run(r); err != nil {
		v.add("attack", "the attack itself: %v", err)
	}
	if d := leastDuring - time.Since(begun); d > 0 {
		pause(ctx, d)
	}
	after, over := look(p.pid()), time.Now()
	r.leave()
	v.Sent, v.Before, v.CPU = float64(r.sent.Load())/(1<<20), before.resident, after.processor-before.processor
	v.figures, v.Answers = r.figures, r.checked
	if !a.Alone {
		pause(ctx, 100*time.Millisecond) // what was due before is answered
		seen, err := s.by.dismiss()
		s.by = nil
		if err != nil {
			return nil, errors.Join(err, s.end())
		}
		v.heard(seen)
		v.Undisturbed, v.During = latencyOf(seen.Samples, quiet, begun), latencyOf(seen.Samples, begun, over)
	}
	return func() (*Verdict, error) {
		v.After, v.Cooled = cool(ctx, p, a.after(v.Before), over)
		v.Peak = g.end()
		v.figures = append(v.figures, s.leftOver(ctx, over)...)
		v.judge(a, s.faults)
		if err := s.end(); err != nil {
			v.add("end", "%v", err)
		}
		return v, ctx.Err()
	}, nil
}

// stage is what an attack takes place on.
type stage struct {
	up     *upstream
	by     *witness // nil: none
	p      *process
	faults *faults
}

// set starts ferryman, its upstream, and a bystander that asks already.
func set(ctx context.Context, a Attack, t Target) (*stage, error) {
	s := &stage{faults: &faults{}}
	if err := s.begin(ctx, a, t); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *stage) begin(ctx context.Context, a Attack, t Target) (err error) {
	if a.moods == nil {
		a.moods = moods
	}
	if s.up, err = newUpstream(s.faults, a.moods...); err != nil {
		return err
	}
	addr := ""
	if !a.Alone {
		if s.by, addr, err = t.call(); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "redteam")
	if err != nil {
		return err
	}
	if s.p, err = t.start(ctx, dir, configure(s.up, addr, 60), a.Secure); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if s.by != nil {
		err = s.by.ask(s.p.addr, a.Secure)
	}
	return err
}

// leftOver looks for requests upstream whose clients have left, once these have had some time to be noticed.
func (s *stage) leftOver(ctx context.Context, left time.Time) []figure {
	hang := s.up.places["hang"]
	for hang.busy() > 0 && time.Since(left) < noticing && pause(ctx, 20*time.Millisecond) {
	}
	if n := hang.busy(); n > 0 {
		return []figure{{name: "connections that hang upstream without a client", got: float64(n)}}
	}
	return nil
}

// end ends what runs. An error is how ferryman ended.
func (s *stage) end() (err error) {
	if s.by != nil {
		_, _ = s.by.dismiss()
	}
	if s.up != nil {
		s.up.close()
	}
	if s.p != nil {
		err = s.p.stop()
		_ = os.RemoveAll(s.p.dir)
	}
	return err
}

// cool waits until a process holds at most some MiB. It returns what it holds then, and how long that took.
func cool(ctx context.Context, p *process, most float64, left time.Time) (held float64, took time.Duration) {
	for {
		held, took = look(p.pid()).resident, time.Since(left)
		if held <= most || took > cooling || !pause(ctx, 20*time.Millisecond) {
			return held, took
		}
	}
}

// memoryGuard watches what a process holds, and ends attack and process where that is far too much.
type memoryGuard struct {
	p      *process
	cancel func()
	over   chan struct{}
	done   sync.WaitGroup
	peak   float64
}

func guardMemory(p *process, cancel func()) *memoryGuard {
	g := &memoryGuard{p: p, cancel: cancel, over: make(chan struct{})}
	g.done.Go(g.watch)
	return g
}

func (g *memoryGuard) watch() {
	for t := time.NewTicker(10 * time.Millisecond); ; {
		u := look(g.p.pid())
		if g.peak = max(g.peak, u.peak); u.resident > ceiling {
			g.cancel()
			g.p.kill()
		}
		select {
		case <-g.over:
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// end returns the most that was held.
func (g *memoryGuard) end() float64 {
	close(g.over)
	g.done.Wait()
	return g.peak
}
