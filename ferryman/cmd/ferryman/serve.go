package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"reflect"
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
	signals        chan os.Signal
	proxy          *ferryman.Proxy
	cert           *ferryman.Certificate // nil: plaintext
	front, metrics net.Listener
	admin          http.Handler
	failed         chan error
	pokes          []chan struct{} // SIGHUP goes to each
	beside         sync.WaitGroup
}

// serve is the command run. Everything is validated and bound before anything is served.
func (p *program) serve(ctx context.Context) error {
	s := p.newService()
	defer signal.Stop(s.signals)
	file := p.get("config")
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	if p.get("tls-cert") != "" {
		if s.cert, err = ferryman.LoadCertificate(p.get("tls-cert"), p.get("tls-key")); err != nil {
			return fmt.Errorf("%w (see --tls-cert and --tls-key)", err)
		}
	}
	if s.front, err = listen("bind", p.get("bind")); err != nil {
		return err
	}
	defer s.front.Close()
	if s.metrics, err = listen("metrics-bind", p.get("metrics-bind")); err != nil {
		return err
	}
	defer s.metrics.Close()
	if s.proxy, err = p.newProxy(c, s.log); err != nil {
		return err
	}
	s.admin = s.proxy.MetricsHandler()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.watchConfig(ctx, file, c)
	s.watchCertificate(ctx)
	go collect(ctx)
	return s.run(ctx, cancel)
}

func (p *program) newService() *service {
	s := &service{log: p.logger(), signals: make(chan os.Signal, 4), failed: make(chan error, 2)}
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return s
}

func (p *program) newProxy(c config.Config, log *slog.Logger) (*ferryman.Proxy, error) {
	o := ferryman.Options{Logger: log, Engine: p.get("engine")}
	o.Version, o.Commit = build()
	return ferryman.New(c, o)
}

// listen turns off MPTCP, which Go asks for by default and which has its price on each accept
// and each send.
func listen(flag, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", addr)
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

// watchConfig reloads the proxy when the file changes. The poke at the start makes up for a
// change between its loading and its watching.
func (s *service) watchConfig(ctx context.Context, file string, active config.Config) {
	poke := s.poke()
	poke <- struct{}{}
	first := true
	apply := func(c config.Config, err error) {
		same := first && err == nil && reflect.DeepEqual(c, active)
		first = false
		if same {
			return
		}
		if err != nil {
			s.proxy.ReloadFailed(err)
			return
		}
		_ = s.proxy.Reload(c) // logged and counted there
	}
	s.beside.Go(func() { _ = config.Watch(ctx, file, poke, apply) })
}

func (s *service) watchCertificate(ctx context.Context) {
	if s.cert == nil {
		return
	}
	poke := s.poke()
	s.beside.Go(func() {
		s.cert.Watch(ctx, poke, func(err error) {
			if err != nil {
				s.log.Error("certificate rejected, the old one stays in use", "error", err)
				return
			}
			s.log.Info("certificate reloaded")
		})
	})
}

func (s *service) poke() chan struct{} {
	poke := make(chan struct{}, 1)
	s.pokes = append(s.pokes, poke)
	return poke
}

// run serves until a signal or the end of ctx, and then drains. stop ends what was started
// beside.
func (s *service) run(ctx context.Context, stop func()) error {
	server := &http.Server{Handler: s.admin, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	defer server.Close()
	go s.serveMetrics(server)
	go s.serveClients()
	s.log.Info("listening", "clients", s.front.Addr().String(), "tls", s.cert != nil, "metrics", s.metrics.Addr().String())
	for {
		select {
		case err := <-s.failed:
			s.log.Error("listener failed", "error", err)
			s.proxy.Close()
			return errSaid
		case sig := <-s.signals:
			if sig == syscall.SIGHUP && s.reload() {
				continue
			}
			s.log.Info("draining", "signal", sig.String(), "limit", drainLimit)
		case <-ctx.Done():
			s.log.Info("draining", "limit", drainLimit)
		}
		stop()
		return s.drain()
	}
}

func (s *service) serveMetrics(server *http.Server) {
	if err := server.Serve(s.metrics); !errors.Is(err, http.ErrServerClosed) {
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

// reload is false where there is nothing to reload: then a hangup is the end, as for any program.
func (s *service) reload() bool {
	s.proxy.RefreshNames()
	for _, poke := range s.pokes {
		select {
		case poke <- struct{}{}:
		default: // one is due already
		}
	}
	return len(s.pokes) > 0
}

// drain waits for the requests in flight. A second signal ends that at once.
func (s *service) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- s.proxy.Shutdown(ctx) }()
	for {
		select {
		case err := <-drained:
			if err != nil {
				return errSaid
			}
			s.beside.Wait()
			s.log.Info("drained")
			return nil
		case sig := <-s.signals:
			if sig != syscall.SIGHUP {
				s.log.Warn("second signal, requests in flight are cut")
				return errSaid
			}
		}
	}
}
