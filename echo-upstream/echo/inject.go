package echo

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// injection is a fault in force. It is replaced whole, never changed; over is closed when the next
// one takes its place, which ends every wait that belongs to it.
type injection struct {
	fault Fault
	over  chan struct{}
	asked atomic.Uint64 // requests that the error rate was applied to
}

// kind numbers the faults for the counters.
type kind int

const (
	kindLatency kind = iota
	kindError
	kindHang
	kindReset
	kindSlowBody
	kinds
)

var kindNames = [kinds]string{"latency", "error", "hang", "reset", "slow_body"}

// setFault puts f in force. The zero Fault heals.
func (s *Server) setFault(f Fault) {
	next := &injection{fault: f, over: make(chan struct{})}
	if !f.Active() {
		next = nil
	}
	if previous := s.injected.Swap(next); previous != nil {
		close(previous.over)
	}
	s.faultChanges.Add(1)
}

// fault is what is in force.
func (s *Server) fault() Fault {
	if in := s.injected.Load(); in != nil {
		return in.fault
	}
	f := Fault{}
	_ = f.complete() // only fills in defaults: the zero value is valid
	return f
}

// misbehave applies the fault before an answer exists and reports whether the request is dealt
// with: answered with an error, or its connection gone.
func (s *Server) misbehave(ctx *fasthttp.RequestCtx, in *injection) (handled bool) {
	f := in.fault
	if f.Latency > 0 || f.Jitter > 0 {
		s.faults[kindLatency].Add(1)
		if !s.wait(in, time.Duration(f.Latency)+time.Duration(rand.Float64()*float64(f.Jitter))) {
			return false // healed while it waited: the rest of the fault is over too
		}
	}
	switch {
	case f.Hang:
		s.faults[kindHang].Add(1)
		s.hold(ctx, in)
		return true
	case f.Reset:
		s.faults[kindReset].Add(1)
		connOf(ctx).reset()
		return true
	case in.drawError():
		s.faults[kindError].Add(1)
		drain(ctx)
		ctx.Error("injected error\n", f.ErrorStatus)
		return true
	}
	return false
}

// drawError says whether this request is one of those that get an error: the n-th is when the
// rounded-down share of n requests grows with it, which spreads them evenly.
func (in *injection) drawError() bool {
	rate := in.fault.ErrorRate
	if rate <= 0 {
		return false
	}
	n := float64(in.asked.Add(1))
	return math.Floor(n*rate) > math.Floor((n-1)*rate)
}

// wait lasts d and returns true, or ends early and returns false when the fault is over or the
// server stops.
func (s *Server) wait(in *injection, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-in.over:
		return false
	case <-s.stopping:
		return false
	}
}

// hold keeps the connection without an answer until the client leaves, the fault is over or the
// server stops. Whatever else the client sends is thrown away.
func (s *Server) hold(ctx *fasthttp.RequestCtx, in *injection) {
	s.held.Add(1)
	defer s.held.Add(-1)
	c := connOf(ctx)
	left := make(chan struct{})
	go c.readUntilGone(left)
	select {
	case <-left:
	case <-in.over:
	case <-s.stopping:
	}
	_ = c.Close() // also ends readUntilGone
	<-left
}

// slowBody arranges that the answer's body takes as long as the fault says.
func (s *Server) slowBody(ctx *fasthttp.RequestCtx, in *injection) {
	d := time.Duration(in.fault.SlowBody)
	if d <= 0 {
		return
	}
	s.faults[kindSlowBody].Add(1)
	size := ctx.Response.Header.ContentLength()
	if !ctx.Response.IsBodyStream() {
		size = len(ctx.Response.Body())
	}
	connOf(ctx).slow = newTrickle(d, size, func(d time.Duration) { s.wait(in, d) })
}
