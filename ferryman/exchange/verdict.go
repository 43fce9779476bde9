package exchange

import "time"

// verdict is what an exchange says of its upstream.
type verdict uint8

const (
	neutral verdict = iota
	success
	failure
)

// judge reports to the breaker, once per exchange. cause is what a log line says of it.
func (e *Exchange) judge(v verdict, cause string) {
	if e.judged || e.route == nil {
		return
	}
	e.judged = true
	now := e.ex.Now()
	switch v {
	case success:
		if e.ticket.Success(now) {
			e.shared.Observer.CircuitChanged(e.route.Upstream, cause, nil)
		}
	case failure:
		if e.ticket.Failure(now) {
			e.route.Upstream.FailWaiters()
			e.shared.Observer.CircuitChanged(e.route.Upstream, cause, e.upstreamErr)
		}
	default:
		e.ticket.Release(now)
	}
}

// fail ends an admitted exchange whose upstream gave no response.
func (e *Exchange) fail(o *Outcome) {
	if e.upstreamErr != nil {
		e.shared.Observer.RequestFailed(e.route.Upstream, o.Status, o.cause, e.upstreamErr)
	}
	e.judge(o.verdict, o.cause)
	e.drop()
	if o.Status == 0 {
		e.route.Counters.ClientAborted()
		return
	}
	e.refuse(o)
}

// refuse sends ferryman's own response.
func (e *Exchange) refuse(o *Outcome) {
	var retryAfter time.Duration
	if o == outcomeCircuitOpen {
		retryAfter = e.route.Upstream.Breaker().RetryAfter(e.ex.Now())
	}
	if e.route == nil {
		e.shared.Unrouted.Answered(o.Status)
	} else {
		e.route.Counters.Answered(o.Status)
	}
	e.frontend.Reply(o, retryAfter)
	e.complete = true
}

// drop closes the upstream's connection.
func (e *Exchange) drop() {
	if e.up != nil {
		e.up.Discard()
		e.up = nil
	}
}

// leave is deferred by Run, so that it runs on a panic as well: it frees the connection, the probe's slot and the
// upload.
func (e *Exchange) leave() {
	e.endUpload()
	e.frontend.Guard(nil)
	e.drop()
	e.judge(neutral, "")
	e.out.Release()
}
