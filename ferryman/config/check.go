package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// check applies the rules that hold for files and for configurations built in code.
func (r *report) check(c *Config) {
	r.checkNumbers(c, nil, "", topFields)
	r.checkHealth(c)
	for i, p := range c.TrustedProxies {
		if p != p.Masked() || !p.IsValid() || p.Addr().Is4In6() {
			r.fail(fmt.Sprintf("trusted_proxies[%d]", i), "must have no bits after its length, and not be IPv4 in IPv6; it is %v", p)
		}
	}
	if len(c.Routes) == 0 {
		r.fail("routes", "there is none: add [[routes]] with a prefix and an upstream")
	}
	prefixes, upstreams := map[string]string{}, map[string]int{}
	for i := range c.Routes {
		section := fmt.Sprintf("routes[%d].", i)
		r.checkNumbers(c, &c.Routes[i], section, routeFields)
		r.checkPrefix(section+"prefix", c.Routes[i].Prefix, prefixes)
		r.checkUpstream(c, i, section, upstreams)
	}
}

// checkHealth blames the one that was written, where the other is a default.
func (r *report) checkHealth(c *Config) {
	const timeout, interval = "health_timeout_secs", "health_interval_secs"
	if c.HealthTimeout < c.HealthInterval || r.bad[timeout] || r.bad[interval] {
		return
	}
	if r.lines != nil && r.lines[timeout] == 0 {
		r.fail(interval, "must be more than %s, %v by default; it is %v", timeout, c.HealthTimeout.Seconds(), c.HealthInterval.Seconds())
		return
	}
	r.fail(timeout, "must be less than %s, %v%s; it is %v", interval, c.HealthInterval.Seconds(), r.byDefault(interval), c.HealthTimeout.Seconds())
}

func (r *report) checkNumbers(c *Config, route *Route, section string, fields []field) {
	for _, f := range fields {
		var v float64
		switch p := f.of(c, route).(type) {
		case *time.Duration:
			v = p.Seconds()
		case *int:
			v = float64(*p)
		default:
			continue
		}
		if !f.ok(v) && (route == nil || v != 0) {
			r.fail(section+f.key, "%s; it is %v", f.want(), v)
		}
	}
}

func (r *report) checkPrefix(key, prefix string, seen map[string]string) {
	if prefix == "" {
		r.fail(key, `is missing: add one such as "/api"`)
	} else if msg := badPrefix(prefix); msg != "" {
		r.fail(key, "%s; it is %.60q", msg, prefix)
	} else if first, twice := seen[trimSlash(prefix)]; twice {
		r.fail(key, "%q is already the prefix of the route at %s: keep one of the two", prefix, r.at(first))
	} else {
		seen[trimSlash(prefix)] = key
	}
}

// checkUpstream also checks that all routes to one upstream have the same cooldown.
func (r *report) checkUpstream(c *Config, i int, section string, seen map[string]int) {
	route, key, cooldown := c.Routes[i], section+"upstream", section+"cooldown_secs"
	if route.Upstream == "" {
		r.fail(key, `is missing: add one such as "http://127.0.0.1:8000"`)
	} else if msg := badHostPort(route.Upstream); msg != "" {
		r.fail(key, "%s; it is %.60q", msg, route.Upstream)
	}
	if r.bad[key] || r.bad[cooldown] || r.bad["default_cooldown_secs"] {
		return
	}
	first, shared := seen[route.Upstream]
	if !shared {
		seen[route.Upstream] = i
	} else if a, b := c.Cooldown(route), c.Cooldown(c.Routes[first]); a != b {
		r.fail(cooldown, "%s has one circuit for all its routes, but a cooldown of %v here and of %v at %s: make them equal",
			route.Upstream, a.Seconds(), b.Seconds(), r.at(fmt.Sprintf("routes[%d].cooldown_secs", first)))
	}
}

// trimSlash takes the slash off the end of a prefix, unless it is all there is.
func trimSlash(prefix string) string {
	if len(prefix) > 1 {
		return strings.TrimSuffix(prefix, "/")
	}
	return prefix
}

// badPrefix says what would have to be different for a request to match prefix.
func badPrefix(prefix string) string {
	if !strings.HasPrefix(prefix, "/") {
		return "must start with /"
	}
	for i, ch := range prefix {
		if ch <= ' ' || ch >= 0x7f || strings.ContainsRune(`?#\`, ch) {
			return fmt.Sprintf("must be a path as clients send it, escaped and without a query, so not with %q", ch)
		}
		if ch != '%' {
			continue
		}
		v, err := strconv.ParseUint(prefix[i+1:min(i+3, len(prefix))], 16, 8)
		if err != nil || i+3 > len(prefix) || v == 0 {
			return "must have two hexadecimal digits after each %, and not %00"
		}
		if isUnreserved(byte(v)) {
			return fmt.Sprintf("must have %c instead of %s", v, prefix[i:i+3])
		}
	}
	if len(prefix) > 1 && strings.Contains(prefix, "//") {
		return "must not have an empty segment, two slashes in a row"
	}
	for seg := range strings.SplitSeq(delimiters.Replace(prefix), "/") {
		if seg, _, _ = strings.Cut(seg, ";"); seg == "." || seg == ".." {
			return "must not have a dot segment"
		}
	}
	return ""
}

// delimiters are what an upstream may take for a slash, or for the beginning of a segment's parameters.
var delimiters = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", "%3b", ";", "%3B", ";")

func isUnreserved(ch byte) bool {
	return ch|0x20 >= 'a' && ch|0x20 <= 'z' || ch >= '0' && ch <= '9' || strings.IndexByte("-._~", ch) >= 0
}

// badHostPort says what addr would have to be to be "host:port".
func badHostPort(addr string) string {
	colon := strings.LastIndexByte(addr, ':')
	if colon <= strings.LastIndexByte(addr, ']') {
		return "must have a port, as in host:80"
	}
	host, port := addr[:colon], addr[colon+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return "must have a port from 1 to 65535"
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	isName := func(ch rune) bool { return ch < 0x7f && ch != '~' && (ch == '_' || isUnreserved(byte(ch))) }
	switch {
	case err == nil && (host == ip.String() && ip.Is4() || host == "["+ip.String()+"]" && ip.Is6() && ip.Zone() == ""):
		return ""
	case strings.Trim(host, "0123456789.") != "" && strings.TrimFunc(host, isName) == "" && !strings.Contains("."+host, ".."):
		return ""
	}
	return "must have a host that is a name, an IPv4 address, or an IPv6 address in short form and brackets"
}
