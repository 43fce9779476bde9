package frontend

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// restless is an executor that only takes note of what it is to start, and a socket of it.
type restless struct {
	netloop.Executor // what is not used here
	net.Conn
	started  []func()
	posted   chan func()
	deadline time.Time
	written  func()
}

func (r *restless) Go(f func())                         { r.started = append(r.started, f) }
func (r *restless) Post(f func())                       { r.posted <- f }
func (r *restless) Now() time.Time                      { return time.Now() }
func (r *restless) SetReadDeadline(at time.Time) error  { r.deadline = at; return nil }
func (r *restless) SetWriteDeadline(at time.Time) error { return nil }

func (r *restless) Write(b []byte) (int, error) {
	r.written()
	return len(b), nil
}

func TestMove_WaitsForTheSenderAndForTheFrame(t *testing.T) {
	ex, n := &restless{}, 0
	c := &connH2{srv: newServer(t, 0), ex: ex, conn: ex, transferH2: transferH2{to: ex}}
	c.send = c.flush
	ex.written = func() {
		if n++; n <= maxRounds { // who sends finds more each time, until it leaves that to another
			c.mu.Lock()
			c.ping(0, goAwayPing)
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	c.ping(0, goAwayPing)
	require.NoError(t, c.flushLocked())
	require.NoError(t, c.flushLocked()) // a third sends the rest
	require.False(t, c.mayMove(), "the other one is still to come")
	c.begun = true
	c.mu.Unlock()
	require.Len(t, ex.started, 1)
	ex.started[0]()
	require.True(t, c.mayMove())
	require.Zero(t, ex.deadline, "the reader is within a frame")
	c.begun = false
	c.checkForMove()
	require.NotZero(t, ex.deadline)
}

// fakeEvent tells whether it was set.
type fakeEvent struct{ set bool }

func (g *fakeEvent) Set()  { g.set = true }
func (g *fakeEvent) Wait() {}

// The time of a wait may run out when the wait is over: by then others, of another loop even, may wait there.
func TestStream_ALateTimerWakesNobody(t *testing.T) {
	srv := newServer(t, time.Millisecond)
	ex := &restless{Executor: srv.Goroutines, posted: make(chan func(), 1)}
	s := &streamH2{c: &connH2{srv: srv, ex: ex}}
	s.e.Reset(srv.shared, ex, srv.shared.Snapshot.Load(), s, s)
	waited := make(chan error)
	go func() {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		waited <- s.wait(&s.wake)
	}()
	late := <-ex.posted
	s.c.mu.Lock()
	s.wake.wakeAll()
	s.c.mu.Unlock()
	require.NoError(t, <-waited)
	next := &fakeEvent{}
	s.wake.events = append(s.wake.events, next)
	late()
	require.False(t, next.set)
}
