package engine

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// haveLoops reports whether this system has the executor of that name.
const haveLoops = true

// connectBurst bounds how many connections a loop has in the making before the schedule begins: an
// accept queue holds a few hundred.
const connectBurst = 64

// loops is the executor made of epoll loops.
type loops struct {
	all []*loop
}

func (r *Runner) newExecutor() (executor, error) {
	if r.plan.Executor == Goroutines {
		return newWorkers(r), nil
	}
	ex := &loops{}
	for i := range r.plan.Loops {
		l, err := newLoop(r, i)
		if err != nil {
			ex.close()
			return nil, err
		}
		ex.all = append(ex.all, l)
	}
	return ex, nil
}

func (ex *loops) connect(ctx context.Context) (established int, err error) {
	deadline := time.Now().Add(connectLimit)
	for _, l := range ex.all {
		l.connectAll(ctx, deadline)
		for _, ln := range l.mine {
			established += ln.idle.n
		}
		if l.dialErr != nil {
			err = l.dialErr
		}
	}
	return established, err
}

func (ex *loops) run() {
	var wg sync.WaitGroup
	for _, l := range ex.all {
		wg.Go(l.run)
	}
	wg.Wait()
}

func (ex *loops) close() {
	for _, l := range ex.all {
		l.close()
	}
}

// connectAll dials every connection of the loop, a burst at a time, until all have an outcome, one
// fails, or time is up.
func (l *loop) connectAll(ctx context.Context, deadline time.Time) {
	l.start = time.Now()
	pending := 0
	for next := 0; next < len(l.conns) || pending > 0; {
		for ; next < len(l.conns) && pending < connectBurst && l.dialErr == nil; next++ {
			c := l.conns[next]
			c.lane.down = c.lane.down[1:] // the conns of a lane are down in the order of their index
			if l.dialErr = l.dial(c); l.dialErr != nil {
				c.lane.down = append(c.lane.down, c)
			} else if c.state == connIdle {
				c.lane.idle.push(c)
			}
		}
		pending = l.dialling()
		if (l.dialErr != nil && pending == 0) || ctx.Err() != nil || time.Now().After(deadline) {
			break
		}
		if pending > 0 {
			l.wait(l.now() + sweepEvery)
			pending = l.dialling()
		}
	}
	for _, c := range l.conns {
		if c.state == connDialling {
			l.retire(c)
			if l.dialErr == nil {
				l.dialErr = unix.ETIMEDOUT
			}
		}
	}
	l.armed = 0
}

func (l *loop) dialling() (n int) {
	for _, c := range l.conns {
		if c.state == connDialling {
			n++
		}
	}
	return n
}
