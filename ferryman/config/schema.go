package config

import (
	"fmt"
	"math"
	"time"
)

const (
	minSeconds = 0.001
	maxSeconds = 24 * 60 * 60
)

// A setting is a key that holds a number: its field (a *time.Duration in seconds or an *int),
// what 0 means (empty: 0 is not allowed) and its bounds.
type setting struct {
	key      string
	field    func(*Config) any
	zero     string
	min, max float64
}

// settings is every key at the top of the file, trusted_proxies and routes aside.
var settings = []setting{
	{"health_interval_secs", func(c *Config) any { return &c.HealthInterval }, "", minSeconds, maxSeconds},
	{"health_timeout_secs", func(c *Config) any { return &c.HealthTimeout }, "", minSeconds, maxSeconds},
	{"default_cooldown_secs", func(c *Config) any { return &c.DefaultCooldown }, "", minSeconds, maxSeconds},
	{"failure_threshold", func(c *Config) any { return &c.FailureThreshold }, "", 1, 1e6},
	{"upstream_timeout_secs", func(c *Config) any { return &c.UpstreamTimeout }, "", minSeconds, maxSeconds},
	{"connect_timeout_secs", func(c *Config) any { return &c.ConnectTimeout }, "", minSeconds, maxSeconds},
	{"client_idle_timeout_secs", func(c *Config) any { return &c.ClientIdleTimeout }, "", minSeconds, maxSeconds},
	{"body_idle_timeout_secs", func(c *Config) any { return &c.BodyIdleTimeout }, "never", minSeconds, maxSeconds},
	{"max_connections", func(c *Config) any { return &c.MaxConnections }, "no limit", 1, 1e7},
}

// cooldownOf is the one number of a route.
func cooldownOf(r *Route) setting {
	return setting{"cooldown_secs", func(*Config) any { return &r.Cooldown }, "", minSeconds, maxSeconds}
}

// ok reports whether v is in range, which nan is not.
func (s setting) ok(v float64) bool {
	return v >= s.min && v <= s.max || v == 0 && s.zero != ""
}

func (s setting) want() string {
	what, or := "a whole number", ""
	if s.min == minSeconds {
		what = "a number of seconds"
	}
	if s.zero != "" {
		or = ", or 0 for " + s.zero
	}
	return fmt.Sprintf("must be %s from %v to %.0f%s", what, s.min, s.max, or)
}

func (s setting) value(c *Config) float64 {
	switch p := s.field(c).(type) {
	case *time.Duration:
		return p.Seconds()
	case *int:
		return float64(*p)
	}
	panic("config: a setting is a *time.Duration or an *int")
}

// set stores v, which is ok.
func (s setting) set(c *Config, v float64) {
	switch p := s.field(c).(type) {
	case *time.Duration:
		*p = time.Duration(math.Round(v * float64(time.Second)))
	case *int:
		*p = int(v)
	}
}
