package config

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A field is a key of the file, where its value goes, and the bounds of a number.
type field struct {
	key string
	of  func(*Config, *Route) any
	number
}

// A number has bounds; zero says what 0 means, and where it is empty, 0 is not allowed. All
// numbers of min 1 are whole, all others are seconds.
type number struct {
	min, max float64
	zero     string
}

var seconds = number{min: 0.001, max: 24 * 60 * 60}

// topFields and routeFields are the whole schema.
var topFields = []field{
	{"health_interval_secs", func(c *Config, _ *Route) any { return &c.HealthInterval }, seconds},
	{"health_timeout_secs", func(c *Config, _ *Route) any { return &c.HealthTimeout }, seconds},
	{"default_cooldown_secs", func(c *Config, _ *Route) any { return &c.DefaultCooldown }, seconds},
	{"failure_threshold", func(c *Config, _ *Route) any { return &c.FailureThreshold }, number{min: 1, max: 1e6}},
	{"upstream_timeout_secs", func(c *Config, _ *Route) any { return &c.UpstreamTimeout }, seconds},
	{"connect_timeout_secs", func(c *Config, _ *Route) any { return &c.ConnectTimeout }, seconds},
	{"upstream_max_age_secs", func(c *Config, _ *Route) any { return &c.UpstreamMaxAge }, number{seconds.min, seconds.max, "no limit"}},
	{"client_idle_timeout_secs", func(c *Config, _ *Route) any { return &c.ClientIdleTimeout }, seconds},
	{"body_idle_timeout_secs", func(c *Config, _ *Route) any { return &c.BodyIdleTimeout }, number{seconds.min, seconds.max, "never"}},
	{"max_connections", func(c *Config, _ *Route) any { return &c.MaxConnections }, number{1, 1e7, "no limit"}},
	{"trusted_proxies", func(c *Config, _ *Route) any { return &c.TrustedProxies }, number{}},
}

var routeFields = []field{
	{"prefix", func(_ *Config, r *Route) any { return &r.Prefix }, number{}},
	{"upstream", func(_ *Config, r *Route) any { return (*upstreamURL)(&r.Upstream) }, number{}},
	{"cooldown_secs", func(_ *Config, r *Route) any { return &r.Cooldown }, seconds},
	{"strip_prefix", func(_ *Config, r *Route) any { return &r.StripPrefix }, number{}},
	{"upgrade", func(_ *Config, r *Route) any { return &r.Upgrade }, number{}},
}

// upstreamURL is http://host:port in the file and host:port in a Route.
type upstreamURL string

// ok reports whether v is in range, which nan is not.
func (n number) ok(v float64) bool {
	return v >= n.min && v <= n.max || v == 0 && n.zero != ""
}

func (n number) whole() bool { return n.min >= 1 }

func (n number) want() string {
	what, or := "a number of seconds", ""
	if n.whole() {
		what = "a whole number"
	}
	if n.zero != "" {
		or = ", or 0 for " + n.zero
	}
	return fmt.Sprintf("must be %s from %v to %.0f%s", what, n.min, n.max, or)
}

// store puts a value of the file into its field, or says what would be right.
func (r *reader) store(key string, f field, v *unstable.Node, route *Route) {
	num, ok := f.parse(v)
	if !ok && f.max > 0 {
		r.fail(key, "%s; it is %s", f.want(), show(v))
		return
	}
	switch to := f.of(&r.c, route).(type) {
	case *time.Duration:
		*to = time.Duration(math.Round(num * float64(time.Second)))
	case *int:
		*to = int(num)
	case *bool:
		if v.Kind != unstable.Bool {
			r.fail(key, "must be true or false, without quotes; it is %s", show(v))
		}
		*to = string(v.Data) == "true"
	case *string:
		if v.Kind != unstable.String {
			r.fail(key, "must be a string, in quotes; it is %s", show(v))
		}
		*to = string(v.Data)
	case *upstreamURL:
		r.storeUpstream(key, v, to)
	case *[]netip.Prefix:
		r.storeNetworks(key, v, to)
	}
}

// parse reads a number that is ok.
func (n number) parse(v *unstable.Node) (f float64, ok bool) {
	text, err := strings.ReplaceAll(string(v.Data), "_", ""), error(nil)
	switch {
	case v.Kind == unstable.Integer:
		var i int64
		i, err = strconv.ParseInt(text, 0, 64)
		f = float64(i)
	case v.Kind == unstable.Float && !n.whole():
		f, err = strconv.ParseFloat(text, 64)
	default:
		return 0, false
	}
	return f, err == nil && n.ok(f)
}

// show is a value for a message, on one line and not too long.
func show(v *unstable.Node) string {
	switch v.Kind {
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	case unstable.String:
		return fmt.Sprintf("the string %.60q", v.Data)
	}
	return fmt.Sprintf("%.60s", v.Data)
}

// storeUpstream takes the URL apart by hand, for messages that say what to change.
func (r *reader) storeUpstream(key string, v *unstable.Node, to *upstreamURL) {
	addr, plain := strings.CutPrefix(string(v.Data), "http://")
	host, rest, more := strings.Cut(addr, "/")
	switch {
	case v.Kind != unstable.String || !plain:
		r.fail(key, `must be "http://host:port", without TLS; it is %s`, show(v))
	case more && rest == "":
		r.fail(key, "may have nothing after the port: write http://%.60s without the slash", host)
	case strings.ContainsAny(addr, "/?#@"):
		r.fail(key, "may hold no user, path or query, only http://host:port; it is %s", show(v))
	}
	*to = upstreamURL(strings.ToLower(addr))
}

// storeNetworks reads a list of CIDRs. A bare address is a network of one.
func (r *reader) storeNetworks(key string, v *unstable.Node, to *[]netip.Prefix) {
	if v.Kind != unstable.Array {
		r.fail(key, `must be a list such as ["10.0.0.0/8"]; it is %s`, show(v))
	}
	for it, i := v.Children(), 0; v.Kind == unstable.Array && it.Next(); i++ {
		item, text := fmt.Sprintf("%s[%d]", key, i), string(it.Node().Data)
		if raw := it.Node().Raw; raw.Length > 0 {
			r.lines[item] = r.lineOf(raw)
		}
		p, err := netip.ParsePrefix(text)
		if ip, e := netip.ParseAddr(text); e == nil && ip.Zone() == "" {
			p, err = ip.Prefix(ip.BitLen())
		}
		if err != nil || it.Node().Kind != unstable.String {
			r.fail(item, `must be a network or an address such as "10.0.0.0/8" or "::1"; it is %s`, show(it.Node()))
		}
		*to = append(*to, p)
	}
}
