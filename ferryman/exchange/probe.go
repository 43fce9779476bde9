package exchange

import (
	"sync"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
)

// allowed asks the breaker. A request whose body is still to come depends on its client: as the probe it
// gives way to one that does not.
func (e *Exchange) allowed(now time.Time) (ok bool) {
	b := e.route.Upstream.Breaker()
	if e.Request.Bodiless || b.State() != breaker.Closed && e.body.Whole() {
		e.ticket, ok = b.Allow(now)
	} else if e.ticket, ok = b.AllowYielding(now); e.ticket.Probe() {
		e.body = &probeBody{Body: e.body, ticket: e.ticket, left: probeWaits, more: probeMore, asked: !e.Request.Expect}
	}
	if e.ticket.Probe() {
		e.shared.Observer.CircuitChanged(e.route.Upstream, "cooldown over", nil)
	}
	return ok
}

// probeWaits is how long a probe may wait for its client's body, in all. Every MiB that comes is worth another second,
// up to probeMore: the pauses of a client that keeps sending add up as well.
const probeWaits, probeMore = time.Second, 4 * time.Second

// probeBody is the body of a request that is the probe. The slot is released when the client
// keeps its reader waiting for too long, and no longer yields once the body was read.
type probeBody struct {
	Body
	ticket breaker.Ticket

	mu      sync.Mutex // guards what follows
	left    time.Duration
	more    time.Duration // by which left may still grow
	asked   bool          // the client is not waiting for a 100
	waiting bool          // the reader waits
	since   time.Time     // the client's time runs; zero: it does not
	timer   *time.Timer   // gives the slot back; nil until there was a wait
}

func (b *probeBody) Await() error {
	b.begin()
	defer b.end(0)
	return b.Body.Await()
}

func (b *probeBody) Read(p []byte) (int, error) {
	b.begin()
	n, err := b.Body.Read(p)
	b.end(n)
	if b.Done() {
		b.ticket.Hold()
	}
	return n, err
}

func (b *probeBody) begin() {
	if b.Started() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = true
	b.run()
}

// ask starts the client's time: the upstream has asked for the body.
func (b *probeBody) ask() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = true
	b.run()
}

// run starts the client's time if it is to run.
func (b *probeBody) run() {
	if !b.waiting || !b.asked || !b.since.IsZero() {
		return
	}
	b.since = time.Now()
	if b.timer == nil {
		b.timer = time.AfterFunc(b.left, func() { b.ticket.Release(time.Now()) })
	} else {
		b.timer.Reset(b.left)
	}
}

// end notes how many bytes a wait has brought: a client that sends does not wait for a 100.
func (b *probeBody) end(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting, b.asked = false, b.asked || n > 0
	earned := min(time.Duration(n)*time.Second>>20, b.more)
	b.left, b.more = b.left+earned, b.more-earned
	if b.since.IsZero() {
		return
	}
	b.timer.Stop()
	b.left = max(0, b.left-time.Since(b.since))
	b.since = time.Time{}
}
