// Package pacer is the timetable of a load test: it says when each request is due and on which
// connections it may go. It is arithmetic only; it holds no clock and never waits.
//
//	s, err := pacer.New(pacer.Plan{Rate: 1000, Targets: 1, Connections: 10, Loops: 2})
//	s.Due(0)                    // 0s
//	s.Due(1)                    // 1ms
//	lane := s.Lanes()[s.LaneOf(25)]
//	lane.Request(2)             // 25: the third request of connection 5
//
// Request k is due at k/Rate and belongs to target k mod Targets. A lane is a queue of requests in
// front of the connections that may serve it: one connection in pinned mode, all connections that a
// loop has to a target in pool mode.
package pacer

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Mode says who serves a request.
type Mode int

const (
	// Pinned gives each connection every n-th request; a busy one queues, as in wrk2.
	Pinned Mode = iota
	// Pool gives a request to any idle connection of its loop.
	Pool
)

func (m Mode) String() string {
	if m == Pool {
		return "pool"
	}
	return "pinned"
}

// Plan is what a Schedule is made from.
type Plan struct {
	Rate        float64 // requests per second over all targets; over 0
	Targets     int     // at least 1; they share Rate and Connections
	Connections int     // at least one per target
	Loops       int     // at least 1
	Mode        Mode
}

// MaxRate bounds Plan.Rate: beyond it, two requests are less than a nanosecond apart.
const MaxRate = 1e9

// Lane is a queue of requests and where it is served.
type Lane struct {
	Target      int
	Loop        int
	Connections int // how many serve it

	first, stride int64
}

// Request is the number of the lane's m-th request, from 0.
func (l Lane) Request(m int64) int64 { return l.first + m*l.stride }

// Schedule is a Plan worked out. It never changes and may be shared.
type Schedule struct {
	plan  Plan
	lanes []Lane
	base  []int64 // by target: index of its first lane
	width []int64 // by target: how many lanes it has
}

// New works out a plan, or says what is wrong with it.
func New(p Plan) (*Schedule, error) {
	switch {
	case !(p.Rate > 0) || p.Rate > MaxRate:
		return nil, fmt.Errorf("rate %v: it must be over 0 and at most %.0f requests a second", p.Rate, float64(MaxRate))
	case p.Targets < 1:
		return nil, errors.New("no target")
	case p.Loops < 1:
		return nil, fmt.Errorf("%d loops: at least one is needed", p.Loops)
	case p.Connections < p.Targets:
		return nil, fmt.Errorf("%d connections for %d targets: each needs one of its own", p.Connections, p.Targets)
	}
	s := &Schedule{plan: p}
	for g := range p.Targets {
		s.addTarget(g)
	}
	return s, nil
}

// addTarget gives target g its share of the connections, spread over the loops. Starting at loop g
// keeps the first loop from getting every odd one.
func (s *Schedule) addTarget(g int) {
	p := s.plan
	conns := p.Connections / p.Targets
	if g < p.Connections%p.Targets {
		conns++
	}
	lanes := conns
	if p.Mode == Pool {
		lanes = min(conns, p.Loops)
	}
	s.base = append(s.base, int64(len(s.lanes)))
	s.width = append(s.width, int64(lanes))
	for i := range lanes {
		mine := 1
		if p.Mode == Pool {
			mine = conns / lanes
			if i < conns%lanes {
				mine++
			}
		}
		s.lanes = append(s.lanes, Lane{
			Target: g, Loop: (i + g) % p.Loops, Connections: mine,
			first: int64(i*p.Targets + g), stride: int64(lanes * p.Targets),
		})
	}
}

// Lanes are all lanes; do not change them.
func (s *Schedule) Lanes() []Lane { return s.lanes }

// LaneOf is the index in Lanes of request k.
func (s *Schedule) LaneOf(k int64) int {
	n := int64(s.plan.Targets)
	g := k % n
	return int(s.base[g] + (k/n)%s.width[g])
}

// Due is how long after the start request k is due.
func (s *Schedule) Due(k int64) time.Duration {
	return time.Duration(math.Round(float64(k) * 1e9 / s.plan.Rate))
}

// Count is how many requests are due before d: the smallest k that is not.
func (s *Schedule) Count(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	k := int64(math.Ceil(d.Seconds() * s.plan.Rate))
	for k > 0 && s.Due(k-1) >= d { // rounding may be off by one, either way
		k--
	}
	for s.Due(k) < d {
		k++
	}
	return k
}
