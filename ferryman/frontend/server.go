package frontend

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Options are what a Server works with. All of it is needed.
type Options struct {
	Shared     *exchange.Shared         // its Snapshot is set before Serve
	Engine     netloop.Engine           // carries the connections
	Goroutines *netloop.GoroutineEngine // carries handshakes, and listeners that are not TCP; it may be Engine
	Log        *slog.Logger             // gets failed handshakes, at debug level

	HeadTimeout      time.Duration // for a request's head, from its first byte on
	HandshakeTimeout time.Duration
	UnreadLimit      int64 // bytes of HTTP/2 requests' bodies that may wait for upstreams, on all connections
}

// Server serves clients. New makes it; all methods are safe for concurrent use.
type Server struct {
	Options
	shared      *exchange.Shared
	connections registry
	unread      atomic.Int64 // bytes of memory for HTTP/2 requests' bodies that wait for upstreams
	exchanges   sync.Pool
	dated       atomic.Pointer[dateText]

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]struct{}
	stopped   bool
}

// New returns a Server that accepts nothing yet.
func New(o Options) *Server {
	s := &Server{Options: o, shared: o.Shared, listeners: make(map[net.Listener]struct{})}
	s.exchanges.New = func() any { return new(exchangeH1) }
	return s
}

// Serve accepts plaintext connections from l, HTTP/1.1 and HTTP/2 with prior knowledge, and returns nil after
// StopAccepting, which closes l, or the error that ended it.
func (s *Server) Serve(l net.Listener) error {
	engine := s.Engine
	if _, ok := l.(*net.TCPListener); !ok {
		engine = s.Goroutines
	}
	return s.serve(engine, l, func(ex netloop.Executor, raw netloop.Conn) {
		entry := newEntry(raw)
		if !s.connections.add(entry, s.maxConnections()) {
			raw.Close()
			return
		}
		s.serveH1(ex, raw, raw, entry)
	})
}

func (s *Server) maxConnections() int { return s.shared.Snapshot.Load().MaxConnections }

func (s *Server) serve(engine netloop.Engine, l net.Listener, handle func(netloop.Executor, netloop.Conn)) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	err := engine.Serve(l, handle)
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	return err
}

// StopAccepting closes the listeners, and those that come later at once. From here on the Server is draining.
func (s *Server) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.connections.draining.Store(true)
	for l := range s.listeners {
		l.Close()
	}
}

// Draining reports whether StopAccepting was called.
func (s *Server) Draining() bool { return s.connections.draining.Load() }

// Drain closes what is idle, lets requests in flight end, and returns a channel that is closed once no connection is
// left: HTTP/1.1 clients get "Connection: close", HTTP/2 ones a GOAWAY in two steps.
func (s *Server) Drain() <-chan struct{} { return s.connections.drain() }

// Abort ends the connections that are left, and returns how many these were.
func (s *Server) Abort() int { return s.connections.abortAll() }

// Connections counts those that serve a request and those that wait for one.
func (s *Server) Connections() (active, idle int) { return s.connections.count() }
