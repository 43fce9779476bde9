package ferryman

import (
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// verdict is what an exchange says of its upstream.
type verdict uint8

const (
	neutral verdict = iota
	success
	failure
)

// fault is a way for an exchange to end without an upstream's answer: what the client sees (0:
// nothing), what the breaker hears, and the cause that a log line names.
type fault struct {
	status  int
	body    string
	cause   string
	verdict verdict
}

var (
	faultNoRoute     = &fault{404, "no route", "no route", neutral}
	faultCircuitOpen = &fault{503, "upstream unavailable", "circuit open", neutral}
	faultUpgrade     = &fault{501, "not implemented", "upgrade", neutral}
	faultConnect     = &fault{501, "not implemented", "connect", neutral}
	faultLoop        = &fault{508, "loop detected", "loop", neutral}
	faultPath        = &fault{400, "bad request", "path", neutral}
	faultClientBody  = &fault{400, "bad request", "client body", neutral}
	faultClientGone  = &fault{0, "", "client gone", neutral}
	faultDial        = &fault{502, "bad gateway", "dial", failure}
	faultReset       = &fault{502, "bad gateway", "upstream closed", failure}
	faultMalformed   = &fault{502, "bad gateway", "malformed response", failure}
	faultTimeout     = &fault{504, "gateway timeout", "upstream timeout", failure}
	faultTimeoutBody = &fault{504, "gateway timeout", "upstream timeout during upload", neutral}
	faultLastHop     = &fault{200, "", "max-forwards", neutral}
	faultShortage    = &fault{503, "upstream unavailable", "shortage", neutral}
	faultBusy        = &fault{503, "upstream unavailable", "too many dials", neutral}
)

// syntaxFaults are the answers to a request head that is refused before it is routed.
var syntaxFaults = map[int]*fault{
	400: {400, "bad request", "malformed request", neutral},
	408: {408, "request timeout", "head timeout", neutral},
	414: {414, "uri too long", "target too long", neutral},
	417: {417, "expectation failed", "expectation", neutral},
	431: {431, "request header fields too large", "head too large", neutral},
	505: {505, "http version not supported", "version", neutral},
}

// syntaxFault is the answer to a head that the codec refuses.
func syntaxFault(err *h1.Error) *fault {
	if f := syntaxFaults[err.Status]; f != nil {
		return f
	}
	return syntaxFaults[400]
}

// routeFault tells why no route was found.
func routeFault(err error, upgrade bool) *fault {
	switch {
	case upgrade:
		return faultUpgrade
	case err != nil:
		return faultPath
	}
	return faultNoRoute
}

// dialFault tells why there is no connection to an upstream. What is ferryman's own, a shortage or the wait for other
// requests' dials, says nothing about the upstream.
func dialFault(err error) *fault {
	switch {
	case errors.Is(err, upstream.ErrShortage):
		return faultShortage
	case errors.Is(err, upstream.ErrBusy):
		return faultBusy
	case errors.Is(err, upstream.ErrOpen):
		return faultCircuitOpen
	case errors.Is(err, upstream.ErrAborted):
		return faultClientGone
	}
	return faultDial
}

// upstreamFault turns an error of the upstream's side, met before its head was there, into a fault.
// bodiless: the request had no body, so that a time-out is the upstream's alone.
func upstreamFault(err error, bodiless bool) *fault {
	var syntax *h1.Error
	switch {
	case errors.As(err, &syntax):
		return faultMalformed
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return faultReset
	case bodiless:
		return faultTimeout
	}
	return faultTimeoutBody
}

// appendReply appends the whole HTTP/1.1 answer to a fault. head: the request was a HEAD.
func (f *fault) appendReply(dst []byte, date string, retryAfter time.Duration, head, shut bool) []byte {
	dst = h1.AppendStatus(dst, f.status, []byte(reasons[f.status]))
	dst = h1.AppendField(dst, "Date", date)
	dst = h1.AppendField(dst, "Content-Type", "text/plain; charset=utf-8")
	dst = h1.AppendLength(dst, int64(len(f.body)))
	if f.status == 503 {
		dst = h1.AppendField(dst, "Retry-After", wholeSeconds(retryAfter))
	}
	if shut {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	if head {
		return dst
	}
	return append(dst, f.body...)
}

var reasons = map[int]string{
	200: "OK", 400: "Bad Request", 404: "Not Found", 408: "Request Timeout", 414: "URI Too Long",
	417: "Expectation Failed", 431: "Request Header Fields Too Large", 501: "Not Implemented",
	502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
	505: "HTTP Version Not Supported", 508: "Loop Detected",
}

// wholeSeconds rounds up, to at least 1: who comes back then is not refused again.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
