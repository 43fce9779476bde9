//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Bunty9/ferryman/loadtest/labenv"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// failover breaks one upstream under load, in each of two ways, and looks at all three routes.
func (b *bench) failover(ctx context.Context) error {
	for _, kind := range []string{"kill", "pause"} {
		if err := b.failoverBy(ctx, kind); err != nil {
			return fmt.Errorf("failover by %s: %w", kind, err)
		}
	}
	return nil
}

// quiet is how long the broken route must have been without a bad request.
const quiet = 6 * time.Second

func (b *bench) failoverBy(ctx context.Context, kind string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	args := []string{"-c", "60", "-R", "300", "-d", "1m", "--mode", "pool", "--timeout", "4s", "--max-errors", "any",
		// Only what failed counts here: on a busy machine a refusal can be late through no fault of the proxy.
		"--max-refusal", "1s", "--control", b.controlBind}
	for _, name := range labenv.Upstreams {
		args = append(args, b.proxied+"/svc-"+name+"/echo")
	}
	cmd, stdout, stderr, err := b.loadtest.begin(ctx, args...)
	if err != nil {
		return err
	}
	run := func() error {
		if err := b.flowing(ctx, 2*time.Second); err != nil {
			return err
		}
		if err := b.post(ctx, "/mark/"+kind); err != nil {
			return err
		}
		if err := b.s.Fault(ctx, kind, "a", ""); err != nil {
			return err
		}
		return b.calm(ctx)
	}
	err = run()
	healed := b.s.Heal(context.WithoutCancel(ctx), "a")
	stopped := b.post(ctx, "/stop")
	if stopped != nil {
		cancel() // ends the generator
	}
	r, reported := finish(cmd, stdout, stderr)
	if err := errors.Join(err, healed, stopped, reported); err != nil {
		return err
	}
	b.judgeFailover(kind, r)
	return labenv.Until(ctx, 20*time.Second, "the circuit closes again", func(ctx context.Context) error {
		return labenv.Answers(ctx, b.s.Proxy+"/svc-a/echo")
	})
}

func (b *bench) post(ctx context.Context, path string) error {
	status, text, err := labenv.Ask(ctx, http.MethodPost, b.control+path, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the generator answers %d: %s", status, text)
	}
	return err
}

// flowing waits until the generator has measured for so long.
func (b *bench) flowing(ctx context.Context, d time.Duration) error {
	return labenv.Until(ctx, 20*time.Second, "load", func(ctx context.Context) error {
		s, err := readControl(ctx, b.control)
		if err == nil && s.ElapsedS < d.Seconds() {
			err = fmt.Errorf("%.1f s so far", s.ElapsedS)
		}
		return err
	})
}

// calm waits until the broken route has seen a bad request, and then none for a while.
func (b *bench) calm(ctx context.Context) error {
	return labenv.Until(ctx, 40*time.Second, "an end of bad requests", func(ctx context.Context) error {
		s, err := readControl(ctx, b.control)
		switch {
		case err != nil:
			return err
		case s.Targets[0].LastBadS == nil:
			return errors.New("none yet")
		case s.ElapsedS-*s.Targets[0].LastBadS < quiet.Seconds():
			return fmt.Errorf("the last one was due %.1f s ago", s.ElapsedS-*s.Targets[0].LastBadS)
		}
		return nil
	})
}

func (b *bench) judgeFailover(kind string, r *result.Report) {
	budget := "< " + budgetFailover.String()
	if len(r.Marks) == 0 || r.Targets[0].LastBadS == nil {
		b.add("failover after "+kind, "nothing failed", budget, invalid)
		return
	}
	took := time.Duration((*r.Targets[0].LastBadS - r.Marks[0].AtS) * float64(time.Second))
	bad := r.Targets[0].Bad
	b.add("failover after "+kind, fmt.Sprintf("%v, %d bad requests", took.Round(time.Millisecond), bad), budget, judge(took < budgetFailover))
	others := r.Targets[1].Errors() + r.Targets[2].Errors()
	b.add("errors on the other routes during "+kind, fmt.Sprint(others), "0", judge(others == 0))
}
