package exchange

import (
	"errors"
	"os"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// Outcome is a way for an exchange to end without an upstream's response: what the client gets (status 0: nothing),
// what the breaker counts, and the cause that a log line names.
type Outcome struct {
	Status  int
	Body    string
	cause   string
	verdict verdict
}

var (
	outcomeNoRoute     = &Outcome{404, "no route", "no route", neutral}
	outcomeCircuitOpen = &Outcome{503, "upstream unavailable", "circuit open", neutral}
	outcomeUpgrade     = &Outcome{501, "not implemented", "upgrade", neutral}
	outcomeConnect     = &Outcome{501, "not implemented", "connect", neutral}
	outcomeLoop        = &Outcome{508, "loop detected", "loop", neutral}
	outcomePath        = &Outcome{400, "bad request", "path", neutral}
	outcomeClientBody  = &Outcome{400, "bad request", "client body", neutral}
	outcomeClientGone  = &Outcome{0, "", "client gone", neutral}
	outcomeDial        = &Outcome{502, "bad gateway", "dial", failure}
	outcomeReset       = &Outcome{502, "bad gateway", "upstream closed", failure}
	outcomeMalformed   = &Outcome{502, "bad gateway", "malformed response", failure}
	outcomeTimeout     = &Outcome{504, "gateway timeout", "upstream timeout", failure}
	outcomeTimeoutBody = &Outcome{504, "gateway timeout", "upstream timeout during upload", neutral}
	outcomeLastHop     = &Outcome{200, "", "max-forwards", neutral}
	outcomeShortage    = &Outcome{503, "upstream unavailable", "shortage", neutral}
	outcomeBusy        = &Outcome{503, "upstream unavailable", "too many dials", neutral}
)

// What becomes of a request that cannot be read.
var (
	HeadTimeout     = &Outcome{408, "request timeout", "head timeout", neutral}
	PlaintextForTLS = &Outcome{400, "this port speaks TLS: use https://", "plaintext", neutral}

	malformed = map[int]*Outcome{
		400: {400, "bad request", "malformed request", neutral},
		414: {414, "uri too long", "target too long", neutral},
		417: {417, "expectation failed", "expectation", neutral},
		431: {431, "request header fields too large", "head too large", neutral},
		505: {505, "http version not supported", "version", neutral},
	}
)

// Malformed is the outcome of a head that the codec refuses with a status.
func Malformed(status int) *Outcome {
	if o := malformed[status]; o != nil {
		return o
	}
	return malformed[400]
}

// routeOutcome is the outcome where no route was found.
func routeOutcome(err error, upgrade bool) *Outcome {
	switch {
	case upgrade:
		return outcomeUpgrade
	case err != nil:
		return outcomePath
	}
	return outcomeNoRoute
}

// dialOutcome is the outcome where there is no connection to an upstream. What is ferryman's own, a shortage or the wait for other
// requests' dials, says nothing about the upstream.
func dialOutcome(err error) *Outcome {
	switch {
	case errors.Is(err, upstream.ErrShortage):
		return outcomeShortage
	case errors.Is(err, upstream.ErrBusy):
		return outcomeBusy
	case errors.Is(err, upstream.ErrOpen):
		return outcomeCircuitOpen
	case errors.Is(err, upstream.ErrAborted):
		return outcomeClientGone
	}
	return outcomeDial
}

// responseOutcome turns an error of the upstream's side, met before its head was there, into an outcome.
// bodiless: the request had no body, so that a time-out is the upstream's alone.
func responseOutcome(err error, bodiless bool) *Outcome {
	var syntax *h1.Error
	switch {
	case errors.As(err, &syntax):
		return outcomeMalformed
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return outcomeReset
	case bodiless:
		return outcomeTimeout
	}
	return outcomeTimeoutBody
}
