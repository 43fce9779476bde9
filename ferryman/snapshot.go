package ferryman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/config"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/health"
	"github.com/Bunty9/ferryman/ferryman/metrics"
	"github.com/Bunty9/ferryman/ferryman/route"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// snapshot is one configuration made ready: immutable, and loaded once per request, so that no
// request sees half of a reload.
type snapshot struct {
	config    config.Config
	table     *route.Table[*routeState]
	upstreams map[string]guarded // by host:port
}

// routeState is what an exchange needs of its route.
type routeState struct {
	up      *upstream.Upstream
	cut     int // bytes of the path that strip_prefix takes away
	upgrade bool
	metrics *metrics.Route
}

// guarded is an upstream with its health checker.
type guarded struct {
	*upstream.Upstream
	checker *health.Checker
}

// next builds the snapshot that follows prev, which may be nil. An upstream that stays keeps its
// pool, its breaker and its checker.
func (p *Proxy) next(prev *snapshot, c config.Config) (*snapshot, error) {
	s := &snapshot{config: c, upstreams: make(map[string]guarded)}
	var entries []route.Entry[*routeState]
	var keys []metrics.RouteKey
	for _, r := range c.Routes {
		state := &routeState{up: p.upstreamOf(prev, s, r).Upstream, upgrade: r.Upgrade}
		prefix := trimPrefix(r.Prefix)
		if r.StripPrefix {
			state.cut = len(prefix)
		}
		entries = append(entries, route.Entry[*routeState]{Prefix: prefix, Value: state})
		keys = append(keys, metrics.RouteKey{Prefix: prefix, Upstream: r.Upstream})
	}
	table, err := route.Build(entries)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	s.table = table
	shown := make([]metrics.Upstream, 0, len(s.upstreams))
	for _, u := range s.upstreams {
		shown = append(shown, u.Upstream)
	}
	for i, handle := range p.metrics.Sync(keys, shown) {
		entries[i].Value.metrics = handle
	}
	return s, nil
}

// trimPrefix takes the slash off a prefix's end: both are the same prefix.
func trimPrefix(prefix string) string {
	if len(prefix) > 1 && prefix[len(prefix)-1] == '/' {
		return prefix[:len(prefix)-1]
	}
	return prefix
}

// upstreamOf takes a route's upstream over from prev, or makes it.
func (p *Proxy) upstreamOf(prev, s *snapshot, r config.Route) guarded {
	if u, ok := s.upstreams[r.Upstream]; ok {
		return u
	}
	policy := breaker.Config{Threshold: s.config.FailureThreshold, Cooldown: s.config.Cooldown(r)}
	var u guarded
	if prev != nil {
		u = prev.upstreams[r.Upstream]
	}
	if u.Upstream == nil {
		u = guarded{Upstream: upstream.New(r.Upstream, p.executors(), policy, p.dialer)}
		u.checker = health.New(r.Upstream, "ferryman/"+p.version, readStatus, p.healthReport(u.Upstream))
		u.checker.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return u.DialContext(ctx, p.goroutines) }
	}
	s.upstreams[r.Upstream] = u
	return u
}

// enter starts what s has and prev had not, and applies the settings of those that stay.
func (s *snapshot) enter(prev *snapshot) {
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

// leave stops what s has and next, which may be nil, has not.
func (s *snapshot) leave(next *snapshot) {
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
			p.logCircuit(u, "health check passed", nil)
		case err != nil && u.Breaker().HealthFailed(now):
			u.GiveUp()
			p.logCircuit(u, "health check failed", err)
		}
	}
}

// readStatus reads the head of a health check's answer with the proxy's own parser.
func readStatus(r io.Reader) (int, error) {
	in := h1.NewReader(unawaitedReader{r})
	defer in.Release()
	var resp h1.Response
	for resp.Reset(); ; {
		done, err := in.Response(&resp)
		switch {
		case err != nil:
			return 0, err
		case done && !resp.Interim():
			return resp.Status, nil
		case done:
			resp.Reset()
			continue
		}
		if err := in.Fill(); err != nil {
			return 0, err
		}
	}
}

type unawaitedReader struct{ io.Reader }

func (unawaitedReader) Await() error { return nil }
