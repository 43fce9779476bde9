package exchange

import (
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Request is what an exchange needs to know of a request, whatever its protocol.
type Request struct {
	Path       []byte
	Idempotent bool
	Bodiless   bool
	Empty      bool // the method expects a body and there is none: Content-Length is 0
	Chunked    bool // the body's length is not known
	Expect     bool // the body waits for a 100
	Upgrade    bool
	Connect    bool
	Head       bool // HEAD: the response has no body
	LastHop    bool // OPTIONS or TRACE with Max-Forwards: 0
	Hops       int  // how often ferryman forwarded the request already
}

// Frontend is the client's side of an exchange, in the client's own protocol.
type Frontend interface {
	// AppendHead appends the request's head as the upstream gets it.
	AppendHead(dst []byte, e *Exchange) []byte
	// Stow may free a large Head while the request waits; AppendHead then builds it again.
	Stow(e *Exchange)
	// Reply sends a response of ferryman's own.
	Reply(o *Outcome, retryAfter time.Duration)
	// Interim relays a 1xx head.
	Interim(r *h1.Response) error
	// Begin relays the final head. It may be buffered until Flush.
	Begin(e *Exchange) error
	// Free returns buffer space for the response's body, Written commits n bytes of it, Flush sends what is buffered,
	// End ends the response.
	Free() ([]byte, error)
	Written(n int)
	Flush() error
	End(trailer *h1.Head) error
	// Hijack hands over the connection after a 101, and what was read of it already.
	Hijack() (conn net.Conn, raw netloop.Conn, in *h1.Reader)
	// Guard aborts the upstream's connection, or the wait for one, when the client goes away; nil ends that.
	Guard(victim netloop.Aborter)
	// Gone reports whether the client has gone away.
	Gone() bool
	// StopBody makes a pending read of the request's body fail.
	StopBody()
}

// Body is the body of a request, in whatever protocol it comes.
type Body interface {
	// Started: Read will not block. Whole: the rest of the body has arrived. Done: it was read
	// to its end.
	Started() bool
	Whole() bool
	Done() bool
	Await() error
	Read(p []byte) (int, error)
}
