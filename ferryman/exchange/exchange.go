package exchange

import (
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// Exchange is one request on its way. Between Reset and Run the frontend says what is asked; what is exported is the
// frontend's to read while Run calls it.
type Exchange struct {
	Request  Request
	Response h1.Response // the final head
	Framing  h1.Framing  // of the response's body
	Length   int64       // of the body, where Framing is h1.Length
	Head     []byte      // the request's head as sent, kept for a retry; later the frontend's buffer for the response's head

	shared   *Shared
	ex       netloop.Executor
	snap     *Snapshot
	frontend Frontend
	body     Body
	start    time.Time

	route  *Route
	ticket breaker.Ticket
	wait   upstream.Waiter
	up     *upstream.Conn
	down   h1.Body

	upload
	heard       bool  // bytes of the response have arrived: no retry
	judged      bool  // the verdict was reported to the breaker
	unread      bool  // a 204 or 205 announced a body: the connection is not reused
	complete    bool  // a response was written to its end: the upstream's, or ferryman's own
	upstreamErr error // the upstream's error, for the log
}

// Reset prepares e for another request; its buffers are used again. The caller sets Request.
func (e *Exchange) Reset(shared *Shared, ex netloop.Executor, snap *Snapshot, frontend Frontend, body Body) {
	e.shared, e.ex, e.snap, e.frontend, e.body = shared, ex, snap, frontend, body
	e.start = ex.Now()
	e.route, e.up, e.upstreamErr = nil, nil, nil
	e.heard, e.judged, e.complete = false, false, false
	e.upload.reset()
}

// Snapshot has the settings that hold for the exchange.
func (e *Exchange) Snapshot() *Snapshot { return e.snap }

// Route is the request's route; it is set before AppendHead is called.
func (e *Exchange) Route() *Route { return e.route }

// Complete reports whether the client has got a whole response.
func (e *Exchange) Complete() bool { return e.complete }

// Run serves the request.
func (e *Exchange) Run() {
	defer e.leave()
	if o := e.admit(); o != nil {
		e.refuse(o)
		return
	}
	if e.frontend.Gone() {
		e.fail(outcomeClientGone)
		return
	}
	if !e.allowed(e.ex.Now()) {
		e.refuse(outcomeCircuitOpen)
		return
	}
	if o := e.forward(); o != nil {
		e.fail(o)
		return
	}
	e.relay()
}

// maxHops ends a circle of proxies (RFC 9110 section 7.6.3).
const maxHops = 10

// admit finds the route. It needs nothing of the upstream.
func (e *Exchange) admit() *Outcome {
	switch {
	case e.Request.Connect:
		return outcomeConnect
	case e.Request.Hops >= maxHops:
		return outcomeLoop
	case e.Request.LastHop:
		return outcomeLastHop
	}
	_, r, ok, err := e.snap.Routes.Resolve(e.Request.Path)
	if err != nil || !ok {
		return routeOutcome(err, e.Request.Upgrade)
	}
	e.route = r
	if e.Request.Upgrade && !r.Upgrade {
		return outcomeUpgrade
	}
	return nil
}
