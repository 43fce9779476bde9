package frontend

import (
	"strconv"
	"time"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
)

// Reply sends a response of ferryman's own, and announces the close where the connection is in
// doubt: after anything but a plain refusal, and where a body was not read.
func (c *connH1) Reply(o *exchange.Outcome, retryAfter time.Duration) {
	switch o.Status {
	case 200, 404, 502, 503, 504, 508:
		c.shut = c.shut || !c.body.Done() || c.srv.Draining()
	default:
		c.shut = true
	}
	var scratch [512]byte
	response := appendOutcome(scratch[:0], o, c.srv.date(c.ex.Now()), retryAfter, c.req.HeadMethod, c.shut)
	if c.out.Append(response) != nil || c.out.Flush() != nil {
		c.shut = true
	}
}

// Interim relays a 1xx head; HTTP/1.0 knows none (RFC 9110 section 15.2).
func (c *connH1) Interim(r *h1.Response) error {
	if c.req.Old() {
		return nil
	}
	head := r.AppendKept(h1.AppendStatus(nil, r.Status, r.Reason()), &dropFromResponse)
	if err := c.out.Append(append(head, "\r\n"...)); err != nil {
		return err
	}
	return c.out.Flush()
}

// Begin relays the final head, without sending it yet.
func (c *connH1) Begin(e *exchange.Exchange) error {
	c.shut = c.shut || !e.RequestRead() || c.srv.Draining()
	c.out.Chunked = (e.Framing == h1.Chunked || e.Framing == h1.UntilClose) && !c.req.Old()
	e.Head = c.appendResponse(e.Head[:0], e)
	return c.out.Append(e.Head)
}

func (c *connH1) appendResponse(dst []byte, e *exchange.Exchange) []byte {
	r := &e.Response
	dst = h1.AppendStatus(dst, r.Status, r.Reason())
	drop := dropFromResponse
	drop[h1.Trailer] = !c.out.Chunked
	dst = r.AppendKept(dst, &drop)
	if !hasDate(&r.Head) {
		dst = h1.AppendField(dst, "Date", c.srv.date(c.ex.Now()))
	}
	switch n := contentLength(e); {
	case e.Tunnelling():
		return append(appendUpgrade(append(dst, "Connection: Upgrade\r\n"...), &r.Head), "\r\n"...)
	case n >= 0:
		dst = h1.AppendLength(dst, n)
	case c.out.Chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if c.shut {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// contentLength is the Content-Length of the response as the client gets it, -1 for none.
func contentLength(e *exchange.Exchange) int64 {
	switch {
	case e.Response.Status == 205:
		return 0
	case e.Response.Status == 204 || e.Response.Status < 200:
		return -1
	case e.Framing == h1.None: // HEAD and 304 may tell a length without a body
		return e.Response.DeclaredLength()
	case e.Framing == h1.Length:
		return e.Length
	}
	return -1
}

func hasDate(h *h1.Head) bool {
	for i := range h.Fields {
		if h.Fields[i].Kind == h1.Date {
			return true
		}
	}
	return false
}

func (c *connH1) Free() ([]byte, error) { return c.out.Free() }

func (c *connH1) Written(n int) { c.out.Written(n) }

func (c *connH1) Flush() error { return c.out.Flush() }

func (c *connH1) End(trailer *h1.Head) error { return c.out.End(trailer) }

// appendUpgrade keeps the Upgrade lines of a 101.
func appendUpgrade(dst []byte, h *h1.Head) []byte {
	for i := range h.Fields {
		if f := &h.Fields[i]; f.Kind == h1.Upgrade {
			dst = append(append(dst, "Upgrade: "...), h.ValueOf(f)...)
			dst = append(dst, "\r\n"...)
		}
	}
	return dst
}

// appendOutcome appends the whole HTTP/1.1 response for an outcome. head: the request was a HEAD.
func appendOutcome(dst []byte, o *exchange.Outcome, date string, retryAfter time.Duration, head, shut bool) []byte {
	dst = h1.AppendStatus(dst, o.Status, []byte(reasons[o.Status]))
	dst = h1.AppendField(dst, "Date", date)
	dst = h1.AppendField(dst, "Content-Type", "text/plain; charset=utf-8")
	dst = h1.AppendLength(dst, int64(len(o.Body)))
	if o.Status == 503 {
		dst = h1.AppendField(dst, "Retry-After", wholeSeconds(retryAfter))
	}
	if shut {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	if head {
		return dst
	}
	return append(dst, o.Body...)
}

var reasons = map[int]string{
	200: "OK", 400: "Bad Request", 404: "Not Found", 408: "Request Timeout", 414: "URI Too Long",
	417: "Expectation Failed", 431: "Request Header Fields Too Large", 501: "Not Implemented",
	502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
	505: "HTTP Version Not Supported", 508: "Loop Detected",
}

// wholeSeconds rounds up, to at least 1: a client that retries then is not refused again.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
