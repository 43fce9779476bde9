package ferryman

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/config"
	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/health"
	"github.com/Bunty9/ferryman/ferryman/metrics"
	"github.com/Bunty9/ferryman/ferryman/route"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// snapshot is one configuration in service: what exchanges see of it, and what reloads need to know.
type snapshot struct {
	exchange.Snapshot
	config    config.Config
	upstreams map[string]checkedUpstream // by host:port
}

// install puts s into service.
func (p *Proxy) install(s *snapshot) {
	p.snapshot.Store(s)
	p.shared.Snapshot.Store(&s.Snapshot)
}

// checkedUpstream is an upstream with its health checker.
type checkedUpstream struct {
	*upstream.Upstream
	checker *health.Checker
}

// next builds the snapshot that follows prev, which may be nil. An upstream that stays keeps its
// pool, its breaker and its checker.
func (p *Proxy) next(prev *snapshot, c config.Config) (*snapshot, error) {
	s := &snapshot{config: c, upstreams: make(map[string]checkedUpstream), Snapshot: exchange.Snapshot{
		ConnectTimeout: c.ConnectTimeout, UpstreamTimeout: c.UpstreamTimeout,
		BodyIdleTimeout: c.BodyIdleTimeout, ClientIdleTimeout: c.ClientIdleTimeout,
		MaxConnections: c.MaxConnections, TrustedProxies: c.TrustedProxies,
	}}
	var entries []route.Entry[*exchange.Route]
	var keys []metrics.RouteKey
	for _, r := range c.Routes {
		to := &exchange.Route{Upstream: p.upstreamOf(prev, s, r).Upstream, Upgrade: r.Upgrade}
		prefix := route.Trim(r.Prefix)
		if r.StripPrefix {
			to.Cut = len(prefix)
		}
		entries = append(entries, route.Entry[*exchange.Route]{Prefix: prefix, Value: to})
		keys = append(keys, metrics.RouteKey{Prefix: prefix, Upstream: r.Upstream})
	}
	table, err := route.Build(entries)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	s.Routes = table
	shown := make([]metrics.Upstream, 0, len(s.upstreams))
	for _, u := range s.upstreams {
		shown = append(shown, u.Upstream)
	}
	for i, handle := range p.metrics.Sync(keys, shown) {
		entries[i].Value.Counters = handle
	}
	return s, nil
}

// upstreamOf takes a route's upstream over from prev, or makes it.
func (p *Proxy) upstreamOf(prev, s *snapshot, r config.Route) checkedUpstream {
	if u, ok := s.upstreams[r.Upstream]; ok {
		return u
	}
	policy := breaker.Config{Threshold: s.config.FailureThreshold, Cooldown: s.config.Cooldown(r)}
	var u checkedUpstream
	if prev != nil {
		u = prev.upstreams[r.Upstream]
	}
	if u.Upstream == nil {
		u = checkedUpstream{Upstream: upstream.New(r.Upstream, max(p.goroutines.Executors(), p.engine.Executors()), policy, p.dialer)}
		u.checker = health.New(r.Upstream, "ferryman/"+p.version, h1.ReadStatus, p.healthReport(u.Upstream))
		u.checker.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return u.DialContext(ctx, p.goroutines) }
	}
	s.upstreams[r.Upstream] = u
	return u
}

// start starts what s has and prev had not, and applies the settings of those that stay.
func (s *snapshot) start(prev *snapshot) {
	c := &s.config
	for _, r := range c.Routes {
		s.upstreams[r.Upstream].Breaker().Configure(breaker.Config{Threshold: c.FailureThreshold, Cooldown: c.Cooldown(r)})
	}
	for addr, u := range s.upstreams {
		u.SetMaxAge(c.UpstreamMaxAge)
		if prev != nil && prev.upstreams[addr].Upstream == u.Upstream {
			u.checker.Configure(c.HealthInterval, c.HealthTimeout)
		} else {
			u.checker.Start(c.HealthInterval, c.HealthTimeout)
		}
	}
}

// stop stops what s has and next, which may be nil, has not.
func (s *snapshot) stop(next *snapshot) {
	for addr, u := range s.upstreams {
		if next == nil || next.upstreams[addr].Upstream != u.Upstream {
			u.checker.Stop()
			u.Retire()
		}
	}
}

// healthReport feeds an upstream's checks into its breaker. A check that ferryman had not the means for says nothing.
func (p *Proxy) healthReport(u *upstream.Upstream) func(error) {
	return func(err error) {
		now := time.Now()
		switch {
		case errors.Is(err, upstream.ErrShortage):
		case err == nil && u.Breaker().HealthSucceeded(now):
			observer{p}.CircuitChanged(u, "health check passed", nil)
		case err != nil && u.Breaker().HealthFailed(now):
			u.FailWaiters()
			observer{p}.CircuitChanged(u, "health check failed", err)
		}
	}
}
