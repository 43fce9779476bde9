package ferryman

import (
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// front is the client's side of an exchange, in the client's own protocol.
type front interface {
	// appendHead appends the request's head as the upstream gets it.
	appendHead(dst []byte, e *exchange) []byte
	// stow gives back what a large head takes, where appendHead can append it once more.
	stow(e *exchange)
	// reply sends an answer of ferryman's own.
	reply(f *fault, retryAfter time.Duration)
	// interim relays a 1xx head.
	interim(r *h1.Response) error
	// begin relays the final head. Nothing need be sent before flush.
	begin(e *exchange) error
	// room and commit take the payload of the response in, flush sends what waits, end ends it.
	room() ([]byte, error)
	commit(n int) error
	flush() error
	end(trailer *h1.Head) error
	// tunnel carries bytes both ways after a 101, until both directions have ended.
	tunnel(e *exchange)
	// guard aborts the upstream's connection, or the wait for one, when the client goes away; nil ends that.
	guard(victim netloop.Aborter)
	// gone reports whether the client has gone away.
	gone() bool
	// stopBody makes a pending read of the request's body fail.
	stopBody()
}

// requestBody is the body of a request, in whatever protocol it comes.
type requestBody interface {
	// Started reports whether Read will not block, Whole whether none will until the body's end, Done
	// whether that was read.
	Started() bool
	Whole() bool
	Done() bool
	Await() error
	Read(p []byte) (int, error)
}

// ask is what an exchange needs to know of a request, whatever its protocol.
type ask struct {
	path       []byte
	idempotent bool
	bodiless   bool
	empty      bool // a body was to be expected, and its length is 0
	chunked    bool // the body goes up in chunks
	expect     bool // the body waits for a 100
	upgrade    bool
	connect    bool
	head       bool // HEAD: the response has no body
	lastHop    bool // OPTIONS or TRACE with Max-Forwards: 0
	hops       int  // how often ferryman forwarded the request already
}
