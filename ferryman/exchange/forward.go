package exchange

import (
	"errors"
	"net"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// forward sends the request and awaits the final response head. A bodiless idempotent request that
// fails on a reused connection before any byte of its answer is sent once more on a fresh one.
func (e *Exchange) forward() *Outcome {
	e.Head = e.frontend.AppendHead(e.Head[:0], e)
	sure := !e.Request.Bodiless || !e.Request.Idempotent
	e.up = e.route.Upstream.Idle(e.ex, sure)
	for again := false; ; again = true {
		if e.up == nil {
			e.frontend.Stow(e)
			if err := e.connect(again, sure); err != nil {
				return e.dialFailed(err)
			}
		}
		if len(e.Head) == 0 {
			e.Head = e.frontend.AppendHead(e.Head, e)
		}
		err := e.attempt()
		if err == nil {
			return nil
		}
		if !e.mayRepeat(err) {
			return e.explain(err)
		}
		e.frontend.Guard(nil)
		e.drop()
	}
}

// connect waits for a connection as long as the client does. fresh: only for one that no other request has used.
func (e *Exchange) connect(fresh, sure bool) (err error) {
	e.wait.Reset(e.route.Upstream, e.ex, fresh, sure)
	e.frontend.Guard(&e.wait)
	e.up, err = e.wait.Connection(e.snap.ConnectTimeout)
	e.frontend.Guard(nil)
	return err
}

// dialFailed is the outcome where there is no connection.
func (e *Exchange) dialFailed(err error) *Outcome {
	if e.frontend.Gone() {
		return outcomeClientGone
	}
	o := dialOutcome(err)
	if o != outcomeShortage && o != outcomeCircuitOpen { // these are logged once elsewhere, not per request
		e.upstreamErr = err
	}
	return o
}

// mayRepeat is the one rule about sending twice (RFC 9112 section 9.3.1).
func (e *Exchange) mayRepeat(err error) bool {
	var timeout net.Error
	return e.Request.Bodiless && e.Request.Idempotent && e.up.Reused() && !e.heard && !e.frontend.Gone() &&
		!(errors.As(err, &timeout) && timeout.Timeout())
}

// explain is the outcome of a failed attempt: the client's fault or the upstream's.
func (e *Exchange) explain(err error) *Outcome {
	e.endUpload()
	switch {
	case isBodyFault(e.bodyErr):
		return outcomeClientBody
	case e.bodyErr != nil, errors.Is(err, ErrClientGone), e.frontend.Gone():
		return outcomeClientGone
	}
	e.upstreamErr = err
	return responseOutcome(err, e.Request.Bodiless)
}

// attempt sends the request on e.up and reads the final response head.
func (e *Exchange) attempt() error {
	e.Response.Reset()
	e.heard = false
	if err := e.send(); err != nil {
		return err
	}
	return e.awaitHead()
}

// maxInterim bounds the 1xx heads of one response; RFC 9110 section 15.2 names no number.
const maxInterim = 64

func (e *Exchange) awaitHead() error {
	for interim := 0; ; {
		done, err := e.up.In.Response(&e.Response)
		switch {
		case err != nil:
			return err
		case !done:
			if err := e.up.In.Fill(); err != nil {
				return err
			}
			e.heard = true
			continue
		case !e.Response.Interim():
			e.headSeen()
			return nil
		case e.Response.Status == 101:
			if e.Request.Upgrade {
				e.headSeen()
				return nil
			}
			return errUnasked
		}
		if interim++; interim > maxInterim {
			return errUnasked
		}
		if e.frontend.Interim(&e.Response) != nil {
			return ErrClientGone
		}
		if e.Response.Status == 100 {
			e.awaitBody()
		}
		e.Response.Reset()
	}
}

var (
	// errUnasked is a 101 without an Upgrade request, or too many 1xx responses.
	errUnasked = &h1.Error{Status: 502, Cause: "unasked response"}
	// ErrClientGone is a client that cannot be written to, or whose body is not wanted any more.
	ErrClientGone = errors.New("client gone")
)
