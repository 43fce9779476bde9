package redteam

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Schedule is a run of many attacks.
type Schedule struct {
	Plain, Race string   // binaries: of attacks, and of crossing tests
	Self        string   // as of a Target
	Engines     []string // empty: loops, and goroutines for some
	Only        []string // attacks and crossing tests by name; empty: all
	Out         io.Writer

	mu     sync.Mutex // guards Out and what follows
	failed int
	ran    int
	again  []attempt
}

// attempt is an attack on a target.
type attempt struct {
	a Attack
	t Target
}

// Crossings are the crossing tests.
var Crossings = []Crossing{
	{Name: "crossing", Lasting: 12 * time.Second, Moves: 20},
	{Name: "crossing-tls", Secure: true, Lasting: 11 * time.Second, Moves: 10},
}

// other is the engine on which only the most important take place, unless it is asked for.
const other = "goroutines"

func (s *Schedule) engines(few bool) []string {
	switch {
	case len(s.Engines) > 0:
		return s.Engines
	case few:
		return []string{"loops"}
	}
	return []string{"loops", other}
}

func (s *Schedule) wanted(name string) bool { return len(s.Only) == 0 || slices.Contains(s.Only, name) }

// Run has them all take place, prints a line for each, and returns an error if one got through. Those that look at
// latencies come one after another; each one's ferryman cools beside the next. Those that only wait do so beside
// the crossing tests, which measure no time.
func (s *Schedule) Run(ctx context.Context) error {
	var later sync.WaitGroup
	allProcessors := leaveRoom()
	each := func(alone bool, f func(Attack, Target) error) error {
		for _, a := range Attacks {
			for _, e := range s.engines(a.Few) {
				if a.Alone != alone || !s.wanted(a.Name) {
					continue
				}
				if err := f(a, Target{Binary: s.Plain, Engine: e, Self: s.Self}); err != nil {
					return fmt.Errorf("%s on %s: %w", a.Name, e, err)
				}
			}
		}
		return nil
	}
	err := each(false, func(a Attack, t Target) error {
		finish, err := Begin(ctx, a, t)
		if err == nil {
			later.Go(func() { s.finish(attempt{a, t}, false, finish) })
		}
		return err
	})
	later.Wait()
	if err != nil {
		return err
	}
	for _, x := range s.again {
		s.finish(x, true, func() (*Verdict, error) { return Run(ctx, x.a, x.t) })
	}
	err = each(true, func(a Attack, t Target) error {
		later.Go(func() { s.finish(attempt{a, t}, true, func() (*Verdict, error) { return Run(ctx, a, t) }) })
		return nil
	})
	if allProcessors(); err == nil {
		err = s.cross(ctx)
	}
	later.Wait()
	switch {
	case err != nil:
		return err
	case s.ran == 0:
		return fmt.Errorf("no attack is called %v", s.Only)
	case s.failed > 0:
		return fmt.Errorf("%d of %d got through", s.failed, s.ran)
	}
	return nil
}

// leaveRoom keeps attackers, and the upstream that is theirs, off half of the processors: what another client feels should
// be ferryman's doing.
func leaveRoom() (restore func()) {
	before := runtime.GOMAXPROCS((runtime.NumCPU() + 1) / 2)
	return func() { runtime.GOMAXPROCS(before) }
}

func (s *Schedule) cross(ctx context.Context) error {
	for _, c := range Crossings {
		for _, e := range s.engines(c.Secure) {
			if !s.wanted(c.Name) {
				continue
			}
			if e == other && len(s.Engines) == 0 {
				c.Lasting /= 2
			}
			v, err := Cross(ctx, c, Target{Binary: s.Race, Engine: e, Self: s.Self})
			if err != nil {
				return fmt.Errorf("%s on %s: %w", c.Name, e, err)
			}
			s.tell(v, v.OK())
		}
	}
	return nil
}

// finish tells a verdict when it is there. Where nothing but a latency is over its bound, the attack gets a second
// run, for machines are shared; whatever else is wrong is wrong.
func (s *Schedule) finish(x attempt, second bool, end func() (*Verdict, error)) {
	v, err := end()
	switch {
	case err != nil:
		s.tell(fmt.Errorf("FAIL %s %s: %w", x.a.Name, x.t.Engine, err), false)
	case !second && v.onlyLate():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.again = append(s.again, x)
		fmt.Fprintf(s.Out, "%v\n     it gets a second run\n", v)
	default:
		s.tell(v, v.OK())
	}
}

func (s *Schedule) tell(v any, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran++
	if !ok {
		s.failed++
	}
	fmt.Fprintln(s.Out, v)
}
