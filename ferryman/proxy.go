package ferryman

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/Bunty9/ferryman/ferryman/certificate"
	"github.com/Bunty9/ferryman/ferryman/config"
	dialer "github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/frontend"
	"github.com/Bunty9/ferryman/ferryman/internal/limits"
	"github.com/Bunty9/ferryman/ferryman/logqueue"
	"github.com/Bunty9/ferryman/ferryman/metrics"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Options are what a Proxy takes from the program around it. The zero value is usable.
type Options struct {
	// Logger gets what the proxy has to say; nil: nothing is logged. It is called from a goroutine of its own,
	// so that it may block: lines that do not fit its queue are dropped and counted. See logqueue.Unblocked.
	Logger *slog.Logger
	// Registerer additionally gets the proxy's metrics; MetricsHandler shows them in any case.
	Registerer prometheus.Registerer
	// Engine carries the connections: "loops" (Linux), "goroutines", or "" and "auto" for loops where
	// they exist. The handshakes of TLS always run on goroutines.
	Engine string
	// Resolver looks up the names of upstreams; nil: net.DefaultResolver.
	Resolver *net.Resolver
	// Version and Commit appear in ferryman_build_info and in the health checks' user agent.
	// An empty version is "dev".
	Version, Commit string
}

// Proxy is a reverse proxy. New makes it; it serves any number of listeners until Shutdown or
// Close. All methods are safe for concurrent use.
type Proxy struct {
	log          *slog.Logger
	endLog       func(limit time.Duration) // passes on what is queued
	failures     logqueue.Repeats[failureKind, failureSeen]
	certificates certificate.Set // those of ServeTLS
	metrics      *metrics.Set
	version      string

	shared     exchange.Shared
	frontend   *frontend.Server
	goroutines *netloop.GoroutineEngine
	engine     netloop.Engine
	dialer     *dialer.Dialer
	snapshot   atomic.Pointer[snapshot]

	mu     sync.Mutex // guards reloads and what follows
	failed string     // the last configuration error that was logged
	closed bool
	stop   chan struct{} // ends the upkeep
}

// ErrClosed is returned by Reload after Shutdown or Close.
var ErrClosed = errors.New("the proxy is shut down")

// New returns a proxy for a configuration and starts its health checks. The error names what is
// wrong with the configuration or the options.
func New(c config.Config, o Options) (*Proxy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Proxy{version: o.Version, stop: make(chan struct{})}
	if p.version == "" {
		p.version = "dev"
	}
	p.metrics = metrics.New(p.version, o.Commit, runtime.Version())
	p.metrics.CertificateExpiries(p.certificates.Expiries)
	if o.Registerer != nil {
		if err := p.metrics.Register(o.Registerer); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	p.dialer = p.newDialer(o.Resolver)
	if err := p.startEngines(o.Engine); err != nil {
		return nil, err
	}
	s, err := p.next(nil, c)
	if err != nil {
		p.closeEngines()
		return nil, err
	}
	p.startLog(o.Logger)
	p.shared.Unrouted, p.shared.Observer = p.metrics.Unrouted(), observer{p}
	p.frontend = frontend.New(frontend.Options{
		Shared: &p.shared, Engine: p.engine, Goroutines: p.goroutines, Log: p.log,
		HeadTimeout: limits.Head, HandshakeTimeout: limits.Handshake, UnreadLimit: limits.Unread,
	})
	p.metrics.Connections(p.frontend.Connections)
	p.install(s)
	s.start(nil)
	go p.upkeep()
	return p, nil
}

// startEngines makes the goroutines and, where asked for or fit, the event loops.
func (p *Proxy) startEngines(name string) (err error) {
	o := netloop.Options{
		AcceptPaused:  func(err error) { p.log.Error("accepting paused: no descriptors or memory left", "error", err) },
		AcceptResumed: func() { p.log.Info("accepting again") },
		Panicked:      func(v any, stack []byte) { p.log.Error("panic", "value", v, "stack", string(stack)) },
	}
	p.goroutines = netloop.Goroutines(o)
	p.engine, err = netloop.Named(name, o, p.goroutines)
	return err
}

func (p *Proxy) closeEngines() {
	p.dialer.Close()
	if p.engine != netloop.Engine(p.goroutines) {
		p.engine.Close()
	}
	p.goroutines.Close()
}

// Serve accepts plaintext connections from l, HTTP/1.1 and HTTP/2 with prior knowledge, and
// returns nil after Shutdown or Close, which close l, or the error that ended it.
func (p *Proxy) Serve(l net.Listener) error { return p.frontend.Serve(l) }

// Certificate is a certificate chain with its key, read from two PEM files and read again when they change.
type Certificate = certificate.Pair

// LoadCertificate reads a pair. The error says which file is at fault and what to do.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	return certificate.Load(certFile, keyFile)
}

// ServeTLS accepts TLS connections from l and serves HTTP/2 or HTTP/1.1, as the client chooses
// (ALPN). It returns as Serve does.
func (p *Proxy) ServeTLS(l net.Listener, cert *Certificate) error {
	p.certificates.Add(cert)
	p.certificates.Warn(p.log, time.Now())
	return p.frontend.ServeTLS(l, cert)
}

// Reload puts a new configuration into service as one swap: requests in flight end as they began.
// An invalid one changes nothing and is counted. After Shutdown or Close it is ErrClosed.
func (p *Proxy) Reload(c config.Config) error {
	if err := c.Validate(); err != nil {
		p.ReloadFailed(err)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	prev := p.snapshot.Load()
	next, err := p.next(prev, c)
	if err != nil {
		p.reloadFailedLocked(err)
		return err
	}
	p.failed = ""
	next.start(prev)
	p.install(next)
	prev.stop(next)
	p.metrics.Reloaded(true, time.Now())
	p.log.Info("configuration reloaded", "routes", len(c.Routes), "upstreams", len(next.upstreams))
	return nil
}

// ReloadFailed counts a configuration that could not be read, and logs it unless the last one
// failed in the same way. The old configuration stays in service.
func (p *Proxy) ReloadFailed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reloadFailedLocked(err)
}

func (p *Proxy) reloadFailedLocked(err error) {
	p.metrics.Reloaded(false, time.Now())
	if text := err.Error(); text != p.failed {
		p.failed = text
		p.log.Error("configuration rejected, the old one stays in service", "error", err)
	}
}

// MetricsHandler serves /metrics, /healthz (the process is up) and /readyz (503 while draining).
func (p *Proxy) MetricsHandler() http.Handler {
	return p.metrics.Admin(func() bool { return !p.frontend.Draining() })
}

// idleUpstream is how long a connection to an upstream waits for its next request.
const idleUpstream = time.Minute

// upkeep closes idle connections to upstreams that nobody needs or that the upstream has closed, and tells
// what is due.
func (p *Proxy) upkeep() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			for _, u := range p.snapshot.Load().upstreams {
				u.Prune(now.Add(-idleUpstream))
			}
			p.logRepeats(now)
			p.certificates.Warn(p.log, now)
		}
	}
}
