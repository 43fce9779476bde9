package exchange

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/route"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// Snapshot is one configuration made ready: immutable, and loaded once per request, so that no request sees half of a
// reload. Durations of 0 are no limit.
type Snapshot struct {
	Routes *route.Table[*Route]

	ConnectTimeout    time.Duration
	UpstreamTimeout   time.Duration // from the request's last byte to the response's head
	BodyIdleTimeout   time.Duration // for each pause within a body, and of a tunnel
	ClientIdleTimeout time.Duration // between two requests
	MaxConnections    int           // of clients
	TrustedProxies    []netip.Prefix
}

// Route is what an exchange needs of its route.
type Route struct {
	Upstream *upstream.Upstream
	Cut      int  // length of the prefix to strip from the path; 0: none
	Upgrade  bool // 101 is allowed
	Counters Counters
}

// Counters count what becomes of a route's requests.
type Counters interface {
	Head(took time.Duration) // until the response's final head
	Answered(status int)
	ClientAborted()
}

// Observer receives what is worth a line in the log. Its methods must not block.
type Observer interface {
	// CircuitChanged reports a change of state. err may be nil.
	CircuitChanged(u *upstream.Upstream, cause string, err error)
	// RequestFailed reports a request that an upstream failed.
	RequestFailed(u *upstream.Upstream, status int, cause string, err error)
}

// Shared is what the exchanges of one proxy have in common.
type Shared struct {
	Snapshot atomic.Pointer[Snapshot]
	Unrouted Counters // of requests for which there is no route
	Observer Observer
}
