package ferryman

import (
	"errors"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// exchange is one request on its way: route, breaker, forward, relay. It is borrowed for the
// request and serves many.
type exchange struct {
	p      *Proxy
	ex     netloop.Executor
	snap   *snapshot
	client front
	ask    ask
	body   requestBody
	start  time.Time

	route  *routeState
	ticket breaker.Ticket
	wait   upstream.Waiter
	up     *upstream.Conn
	head   []byte // the request's head as sent, kept for a second try
	resp   h1.Response
	down   h1.Body

	upload
	framing  h1.Framing
	length   int64
	heard    bool  // a byte of the answer was received
	judged   bool  // the breaker was told
	unread   bool  // the response announced content that it must not have: what follows is in doubt
	complete bool  // the response was relayed to its end
	trouble  error // how the upstream failed, if there was an error
}

// run serves one request. Afterwards complete tells whether the client's connection is in step.
func (e *exchange) run() {
	defer e.leave()
	if f := e.admit(); f != nil {
		e.refuse(f)
		return
	}
	if e.client.gone() {
		e.fail(faultClientGone)
		return
	}
	if !e.allowed(e.ex.Now()) {
		e.refuse(faultCircuitOpen)
		return
	}
	if f := e.forward(); f != nil {
		e.fail(f)
		return
	}
	e.relay()
}

// maxHops ends a circle of proxies (RFC 9110 section 7.6.3).
const maxHops = 10

// admit finds the route. It needs nothing of the upstream.
func (e *exchange) admit() *fault {
	switch {
	case e.ask.connect:
		return faultConnect
	case e.ask.hops >= maxHops:
		return faultLoop
	case e.ask.lastHop:
		return faultLastHop
	}
	_, state, ok, err := e.snap.table.Resolve(e.ask.path)
	if err != nil || !ok {
		return routeFault(err, e.ask.upgrade)
	}
	e.route = state
	if e.ask.upgrade && !state.upgrade {
		return faultUpgrade
	}
	return nil
}

// forward sends the request and awaits the final response head. A bodiless idempotent request that
// fails on a reused connection before any byte of its answer is sent once more on a fresh one.
func (e *exchange) forward() *fault {
	e.head = e.client.appendHead(e.head[:0], e)
	sure := !e.ask.bodiless || !e.ask.idempotent
	e.up = e.route.up.Idle(e.ex, sure)
	for again := false; ; again = true {
		if e.up == nil {
			e.client.stow(e)
			if err := e.connect(again, sure); err != nil {
				return e.unconnected(err)
			}
		}
		if len(e.head) == 0 {
			e.head = e.client.appendHead(e.head, e)
		}
		err := e.attempt()
		if err == nil {
			return nil
		}
		if !e.mayRepeat(err) {
			return e.explain(err)
		}
		e.client.guard(nil)
		e.drop()
	}
}

// connect waits for a connection as long as the client does. fresh: only for one that no other request has used.
func (e *exchange) connect(fresh, sure bool) (err error) {
	e.wait.Reset(e.route.up, e.ex, fresh, sure)
	e.client.guard(&e.wait)
	e.up, err = e.wait.Connection(e.snap.config.ConnectTimeout)
	e.client.guard(nil)
	return err
}

// unconnected tells why there is no connection.
func (e *exchange) unconnected(err error) *fault {
	if e.client.gone() {
		return faultClientGone
	}
	f := dialFault(err)
	if f != faultShortage && f != faultCircuitOpen { // of which one line tells for all
		e.trouble = err
	}
	return f
}

// mayRepeat is the one rule about sending twice (RFC 9112 section 9.3.1).
func (e *exchange) mayRepeat(err error) bool {
	var timeout net.Error
	return e.ask.bodiless && e.ask.idempotent && e.up.Reused() && !e.heard && !e.client.gone() &&
		!(errors.As(err, &timeout) && timeout.Timeout())
}

// explain tells whose fault a failed attempt was.
func (e *exchange) explain(err error) *fault {
	e.endUpload()
	switch {
	case isBodyFault(e.bodyErr):
		return faultClientBody
	case e.bodyErr != nil, errors.Is(err, errClientGone), e.client.gone():
		return faultClientGone
	}
	e.trouble = err
	return upstreamFault(err, e.ask.bodiless)
}

// attempt sends the request on e.up and reads the final response head.
func (e *exchange) attempt() error {
	e.resp.Reset()
	e.heard = false
	if err := e.send(); err != nil {
		return err
	}
	return e.awaitHead()
}

// maxInterim bounds the 1xx heads of one response; RFC 9110 section 15.2 names no number.
const maxInterim = 64

func (e *exchange) awaitHead() error {
	for interim := 0; ; {
		done, err := e.up.In.Response(&e.resp)
		switch {
		case err != nil:
			return err
		case !done:
			if err := e.up.In.Fill(); err != nil {
				return err
			}
			e.heard = true
			continue
		case !e.resp.Interim():
			e.headSeen()
			return nil
		case e.resp.Status == 101:
			if e.ask.upgrade {
				e.headSeen()
				return nil
			}
			return errUnasked
		}
		if interim++; interim > maxInterim {
			return errUnasked
		}
		if e.client.interim(&e.resp) != nil {
			return errClientGone
		}
		if e.resp.Status == 100 {
			e.restartClock()
		}
		e.resp.Reset()
	}
}

var (
	// errUnasked is a response that nobody asked for: a 101 out of nowhere, 1xx without end.
	errUnasked = &h1.Error{Status: 502, Cause: "unasked response"}
	// errClientGone is a client that takes no more.
	errClientGone = errors.New("client gone")
)

// judge tells the breaker, once per exchange. cause is what a log line says of it.
func (e *exchange) judge(v verdict, cause string) {
	if e.judged || e.route == nil {
		return
	}
	e.judged = true
	now := e.ex.Now()
	switch v {
	case success:
		if e.ticket.Success(now) {
			e.p.logCircuit(e.route.up, cause, nil)
		}
	case failure:
		if e.ticket.Failure(now) {
			e.route.up.GiveUp()
			e.p.logCircuit(e.route.up, cause, e.trouble)
		}
	default:
		e.ticket.Release(now)
	}
}

// fail ends an admitted exchange whose upstream gave no answer.
func (e *exchange) fail(f *fault) {
	if e.trouble != nil {
		e.p.logFailure(e.route.up, f, e.trouble)
	}
	e.judge(f.verdict, f.cause)
	e.drop()
	if f.status == 0 {
		e.route.metrics.ClientAborted()
		return
	}
	e.refuse(f)
}

// refuse answers by itself.
func (e *exchange) refuse(f *fault) {
	var retryAfter time.Duration
	if f == faultCircuitOpen {
		retryAfter = e.route.up.Breaker().RetryAfter(e.ex.Now())
	}
	e.p.countReply(e.route, f)
	e.client.reply(f, retryAfter)
	e.complete = true
}

// drop closes the upstream's connection.
func (e *exchange) drop() {
	if e.up != nil {
		e.up.Discard()
		e.up = nil
	}
}

// leave is the way out of every exchange, panics included: no connection, no probe's slot stays
// behind.
func (e *exchange) leave() {
	e.endUpload()
	e.client.guard(nil)
	e.drop()
	e.judge(neutral, "")
	e.out.release()
}
