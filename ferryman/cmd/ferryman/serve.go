package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

// drainLimit is how long requests in flight have after the first signal.
const drainLimit = 25 * time.Second

// service is a proxy with its listeners and what runs beside it.
type service struct {
	log            *slog.Logger
	flush          func()
	reloads        bool          // SIGHUP reloads; otherwise it is the end, as for any program
	hangup         chan struct{} // SIGHUP came
	proxy          *ferryman.Proxy
	cert           *ferryman.Certificate // nil: plaintext
	front, metrics net.Listener
	takeMetrics    func(context.Context) net.Listener // where metrics is nil: waits for it
	metricsAddr    string
	admin          http.Handler
	failed         chan error
	pokes          []chan struct{} // a reload goes to each
	beside         sync.WaitGroup
}

// serve is the command run.
func (p *program) serve(ctx context.Context) error {
	s := p.newService()
	s.reloads = true
	ctx, stop := s.listenToSignals(ctx)
	defer stop()
	defer s.close()
	if err := p.prepare(ctx, s); err != nil {
		return err
	}
	go collect(ctx)
	return s.run(ctx)
}

// prepare validates and binds everything before anything is served.
func (p *program) prepare(ctx context.Context, s *service) error {
	file := p.get("config")
	c, err := await(ctx, func() (config.Config, error) { return config.Load(file) })
	if err != nil {
		return err
	}
	if p.get("tls-cert") != "" {
		s.cert, err = await(ctx, func() (*ferryman.Certificate, error) {
			return ferryman.LoadCertificate(p.get("tls-cert"), p.get("tls-key"))
		})
		if err != nil {
			return fmt.Errorf("%w (see --tls-cert and --tls-key)", err)
		}
	}
	if s.front, err = p.bind(ctx, "bind", true); err != nil {
		return err
	}
	s.metrics, err = p.bind(ctx, "metrics-bind", false)
	switch {
	case errors.Is(err, errDraining):
		s.takeMetrics, s.metricsAddr = p.takeMetrics, p.get("metrics-bind")
	case err != nil:
		return err
	}
	if s.proxy, err = p.newProxy(c, s.log); err != nil {
		return err
	}
	s.admin = s.proxy.MetricsHandler()
	s.watchConfig(ctx, file, c)
	s.watchCertificate(ctx)
	return nil
}

// await runs what reads files, which a file system may hold for ever, and waits for it until ctx ends.
func await[T any](ctx context.Context, load func() (T, error)) (loaded T, err error) {
	done := make(chan struct{})
	var late T
	var lateErr error
	go func() {
		defer close(done)
		late, lateErr = load()
	}()
	select {
	case <-done:
		return late, lateErr
	case <-ctx.Done():
		return loaded, ctx.Err()
	}
}

func (p *program) newService() *service {
	return &service{log: p.logger(), flush: p.flush, hangup: make(chan struct{}, 1), failed: make(chan error, 2)}
}

// close frees the addresses.
func (s *service) close() {
	for _, l := range []net.Listener{s.front, s.metrics} {
		if l != nil {
			l.Close()
		}
	}
}

func (p *program) newProxy(c config.Config, log *slog.Logger) (*ferryman.Proxy, error) {
	o := ferryman.Options{Logger: log, Engine: p.get("engine")}
	o.Version, o.Commit = build()
	return ferryman.New(c, o)
}

// listen turns off MPTCP, which Go asks for by default and which has its price on each accept
// and each send.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %w: stop the other program or pass --%s", addr, syscall.EADDRINUSE, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be used: ports below 1024 need a privilege, or pass --%s", addr, flag)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w: pass another --%s", addr, errors.Unwrap(err), flag)
	}
	return l, nil
}

// run serves until a signal or the end of ctx, and then drains.
func (s *service) run(ctx context.Context) error {
	server := &http.Server{Handler: s.admin, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	defer server.Close()
	if s.metrics != nil {
		s.metricsAddr = s.metrics.Addr().String()
	}
	go s.serveMetrics(ctx, server, s.metrics)
	go s.serveClients()
	s.log.Info("listening", "clients", s.front.Addr().String(), "tls", s.cert != nil, "metrics", s.metricsAddr)
	for {
		select {
		case err := <-s.failed:
			s.log.Error("listener failed", "error", err)
			s.proxy.Close()
			return errSaid
		case <-s.hangup:
			s.reload()
		case <-ctx.Done():
			line := []any{"limit", drainLimit}
			if by := (signalled{}); errors.As(context.Cause(ctx), &by) {
				line = append([]any{"signal", by.String()}, line...)
			}
			s.log.Info("draining", line...)
			return s.drain()
		}
	}
}

// serveMetrics serves l, or the address that a process which drains leaves.
func (s *service) serveMetrics(ctx context.Context, server *http.Server, l net.Listener) {
	if l == nil {
		s.log.Info("clients are served, the metrics address follows: a ferryman that is draining has it", "metrics", s.metricsAddr)
		if l = s.takeMetrics(ctx); l == nil {
			return
		}
		s.log.Info("metrics address taken over", "metrics", l.Addr().String())
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- err
	}
}

func (s *service) serveClients() {
	var err error
	if s.cert != nil {
		err = s.proxy.ServeTLS(s.front, s.cert)
	} else {
		err = s.proxy.Serve(s.front)
	}
	if err != nil {
		s.failed <- err
	}
}

func (s *service) reload() {
	s.proxy.RefreshNames()
	for _, poke := range s.pokes {
		select {
		case poke <- struct{}{}:
		default: // one is due already
		}
	}
}

// drain waits for the requests in flight. A second signal ends that: see obey.
func (s *service) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if err := s.proxy.Shutdown(ctx); err != nil {
		return errSaid
	}
	s.beside.Wait()
	s.log.Info("drained")
	return nil
}
