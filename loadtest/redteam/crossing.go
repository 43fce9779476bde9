package redteam

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The crossing test: nobody may get what is meant for another. Every request carries a nonce in its target, in a
// field and in its body, and so does every answer; the upstream looks at the one, the clients at the other. Meanwhile
// clients abort and reset, upstream connections die in the middle of answers, all of them at times, the configuration
// is reloaded each 200 ms, and a load that swings has connections move between event loops.
//
// A 502 or an answer that is visibly cut is what a dead upstream comes to; whatever comes whole must be right. The
// binary has the race detector, which has its say in the log and in the exit status.

// Crossing is a crossing test.
type Crossing struct {
	Name    string
	Secure  bool
	Lasting time.Duration
	Moves   int // that it wants to see at least
}

// CrossingVerdict is what one came to.
type CrossingVerdict struct {
	Name, Engine             string
	Right, Own, Cut, Aborted int64 // answers: right ones, ferryman's own, cut ones; requests that were left alone
	Reloads, Deaths, Moves   int
	Breaches
}

const (
	reloadEvery = 200 * time.Millisecond
	deathEvery  = 700 * time.Millisecond
	// A load that is high for a moment and then low has more loops work, then fewer (ferryman/netloop/scale.go).
	busyFor, calmFor = 600 * time.Millisecond, 4400 * time.Millisecond
	leastRight       = 500 // a busy machine is slow
)

// crossing is one that takes place.
type crossing struct {
	ctx                      context.Context
	r                        *rig
	nonces                   atomic.Int64
	busy                     atomic.Bool // clients do not pause
	right, own, cut, aborted atomic.Int64
}

// Cross runs a crossing test. An error is ours.
func Cross(ctx context.Context, c Crossing, t Target) (*CrossingVerdict, error) {
	s, err := set(ctx, Attack{Secure: c.Secure, Alone: true, moods: echoMoods}, t)
	if err != nil {
		return nil, err
	}
	lasting, cancel := context.WithCancel(ctx) // a deadline would be that of dials too, which pass it a moment before the context does
	defer cancel()
	defer time.AfterFunc(c.Lasting, cancel).Stop()
	x := &crossing{ctx: lasting, r: &rig{ctx: lasting, addr: s.p.addr, secure: c.Secure, up: s.up, pid: s.p.pid(), faults: s.faults}}
	v := &CrossingVerdict{Name: c.Name, Engine: t.Engine}
	var all sync.WaitGroup
	all.Go(func() { v.Reloads = x.reload(s.p) })
	all.Go(func() { v.Deaths = x.die() })
	all.Go(func() { v.Moves = countMoves(lasting, s.p.pid()) })
	all.Go(x.swing)
	for range clientsH1 {
		all.Go(x.clientH1)
	}
	for range clientsH2 {
		all.Go(x.clientH2)
	}
	all.Wait()
	x.r.leave()
	v.Right, v.Own, v.Cut, v.Aborted = x.right.Load(), x.own.Load(), x.cut.Load(), x.aborted.Load()
	v.judge(c, s.faults)
	if err := s.end(); err != nil {
		v.add("end", "%v", err)
	}
	return v, ctx.Err()
}

// every does something again and again, and returns how often.
func (x *crossing) every(d time.Duration, f func(i int)) (n int) {
	for pause(x.ctx, d) {
		f(n)
		n++
	}
	return n
}

// reload has the route lead to one place, then to the other, and other things change as well.
func (x *crossing) reload(p *process) int {
	return x.every(reloadEvery, func(i int) {
		to := echoMoods[i%2].name
		config := fmt.Sprintf(settings, 10+i%3) + route("echo", x.r.up.addr(to))
		if i%4 < 2 {
			config += route("echo/deeper", x.r.up.addr(echoMoods[0].name)) + route("other", x.r.up.addr(to))
		}
		if err := p.reconfigure(config); err != nil {
			x.r.faults.add("reload: %v", err)
		}
	})
}

// die has one place's connections end, then the other's.
func (x *crossing) die() int {
	return x.every(deathEvery, func(i int) { x.r.up.places[echoMoods[i%2].name].resetAll() })
}

func (x *crossing) swing() {
	for {
		x.busy.Store(true)
		if !pause(x.ctx, busyFor) {
			return
		}
		x.busy.Store(false)
		if !pause(x.ctx, calmFor) {
			return
		}
	}
}

func (v *CrossingVerdict) judge(c Crossing, f *faults) {
	v.addFaults("requests and answers", f.n.Load(), f.first)
	if v.Right < leastRight {
		v.add("right answers", "only %d right answers", v.Right)
	}
	if other := v.Own + v.Cut; other > v.Right {
		v.add("other answers", "%d answers are cut or ferryman's own, more than the right ones", other)
	}
	if v.Moves < c.Moves && v.Engine != "goroutines" {
		v.add("moves", "only %d moves between loops, under %d", v.Moves, c.Moves)
	}
	if least := int(c.Lasting / reloadEvery / 8); v.Reloads < least {
		v.add("reloads", "only %d reloads, under %d", v.Reloads, least)
	}
}

func (v *CrossingVerdict) String() string {
	return fmt.Sprintf("%-4s %-18s %-10s %d right answers, %d of ferryman's own, %d cut, %d requests aborted; %d reloads, %d deaths, %d moves",
		v.word(), v.Name, v.Engine, v.Right, v.Own, v.Cut, v.Aborted, v.Reloads, v.Deaths, v.Moves) + v.lines()
}
