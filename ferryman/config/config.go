package config

import (
	"net/netip"
	"time"
)

// Config is one complete configuration. The zero value is not valid: start from Default. All
// durations are between a millisecond and a day.
type Config struct {
	// HealthInterval is the time between two health checks of one upstream, HealthTimeout the
	// limit of one check; it must be less than the interval.
	HealthInterval, HealthTimeout time.Duration
	// DefaultCooldown is how long an open circuit refuses where a route does not say otherwise.
	DefaultCooldown time.Duration
	// FailureThreshold is the number of consecutive failures that open a circuit, at least 1.
	FailureThreshold int
	// UpstreamTimeout is the time that an upstream has to send its response head.
	UpstreamTimeout time.Duration
	// ConnectTimeout is the time for a dial.
	ConnectTimeout time.Duration
	// UpstreamMaxAge is how long a connection to an upstream takes new requests, give or take a tenth. 0 is no limit.
	UpstreamMaxAge time.Duration
	// ClientIdleTimeout is how long a kept-alive client connection may be idle.
	ClientIdleTimeout time.Duration
	// BodyIdleTimeout ends a body that makes no progress, or a tunnel in which neither side does. 0
	// never does.
	BodyIdleTimeout time.Duration
	// MaxConnections limits the client connections. 0 is no limit.
	MaxConnections int
	// TrustedProxies are the networks whose X-Forwarded fields are believed. Empty: none.
	TrustedProxies []netip.Prefix
	// Routes is never empty in a valid configuration. Their order does not matter.
	Routes []Route
}

// Route sends the requests below a path prefix to an upstream.
type Route struct {
	// Prefix starts with a slash. One at its end is the same prefix without it.
	Prefix string
	// Upstream is "host:port", an IPv6 address in brackets.
	Upstream string
	// Cooldown is that of the upstream's circuit. 0: Config.DefaultCooldown.
	Cooldown time.Duration
	// StripPrefix forwards the path without the prefix.
	StripPrefix bool
	// Upgrade lets WebSocket and other upgrades through, with a body if the request has one.
	Upgrade bool
}

// Default returns the documented defaults. It has no routes, so it is not valid yet.
func Default() Config {
	return Config{
		HealthInterval:    5 * time.Second,
		HealthTimeout:     2 * time.Second,
		DefaultCooldown:   30 * time.Second,
		FailureThreshold:  3,
		UpstreamTimeout:   30 * time.Second,
		ConnectTimeout:    2 * time.Second,
		UpstreamMaxAge:    5 * time.Minute,
		ClientIdleTimeout: time.Minute,
	}
}

// Cooldown returns the cooldown of r's upstream: the route's own, else the default.
func (c Config) Cooldown(r Route) time.Duration {
	if r.Cooldown != 0 {
		return r.Cooldown
	}
	return c.DefaultCooldown
}

// Validate checks a configuration that was built in code by the rules that hold for files. The
// error is of type Errors; its keys are those of the file, routes count from 0.
func (c Config) Validate() error {
	r := report{bad: map[string]bool{}}
	r.check(&c)
	return r.err("")
}
