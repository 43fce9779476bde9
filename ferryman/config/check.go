package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// lines says on which line of a file each key is. It is nil for a configuration built in code.
type lines map[string]int

// given reports whether key was written by a person.
func (l lines) given(key string) bool { return l == nil || l[key] > 0 }

// at names the place of key for a message about another key.
func (l lines) at(key string) string {
	if n := l[key]; n > 0 {
		return fmt.Sprintf("line %d", n)
	}
	return key
}

// check applies every rule that does not need the text of a file.
func check(c *Config, l lines) Errors {
	var es Errors
	for _, s := range settings {
		if v := s.value(c); !s.ok(v) {
			es.add(l[s.key], s.key, "%s; it is %v", s.want(), v)
		}
	}
	if c.HealthTimeout >= c.HealthInterval {
		key := "health_timeout_secs"
		if !l.given(key) {
			key = "health_interval_secs"
		}
		es.add(l[key], key, "health_timeout_secs (%s) must be less than health_interval_secs (%s)",
			origin(l, "health_timeout_secs", c.HealthTimeout), origin(l, "health_interval_secs", c.HealthInterval))
	}
	for i, p := range c.TrustedProxies {
		if !p.IsValid() || p != p.Masked() {
			key := fmt.Sprintf("trusted_proxies[%d]", i)
			es.add(l[key], key, "%q: must be a network such as 10.0.0.0/8", p)
		}
	}
	return append(es, checkRoutes(c, l)...)
}

// origin is a duration in seconds, and that it is the default where nobody wrote it.
func origin(l lines, key string, d time.Duration) string {
	text := strconv.FormatFloat(d.Seconds(), 'g', -1, 64)
	if !l.given(key) {
		text += ", the default"
	}
	return text
}

func checkRoutes(c *Config, l lines) Errors {
	var es Errors
	if len(c.Routes) == 0 {
		es.add(0, "routes", "there is none: add [[routes]] with a prefix and an upstream")
	}
	prefixes, upstreams := map[string]string{}, map[string]int{}
	for i := range c.Routes {
		r, name := &c.Routes[i], fmt.Sprintf("routes[%d].", i)
		fail := func(key, format string, args ...any) { es.add(l[name+key], name+key, format, args...) }

		prefix := trimSlash(r.Prefix)
		if msg := badPrefix(r.Prefix); msg != "" {
			fail("prefix", "%q %s", r.Prefix, msg)
		} else if first, twice := prefixes[prefix]; twice {
			fail("prefix", "%q is already the prefix of %s: each prefix needs one route", r.Prefix, l.at(first))
		} else {
			prefixes[prefix] = name + "prefix"
		}

		if s := cooldownOf(r); r.Cooldown != 0 && !s.ok(r.Cooldown.Seconds()) {
			fail(s.key, "%s; it is %v", s.want(), r.Cooldown.Seconds())
		}

		if msg := badHostPort(r.Upstream); msg != "" {
			fail("upstream", "%q %s", r.Upstream, msg)
			continue
		}
		first, shared := upstreams[r.Upstream]
		if !shared {
			upstreams[r.Upstream] = i
		} else if o := c.Routes[first]; c.Cooldown(o) != c.Cooldown(*r) {
			key := "cooldown_secs"
			if !l.given(name + key) {
				key = "upstream"
			}
			fail(key, "%s has one circuit, but its cooldown is %v here and %v for the route of %s: give both the same",
				r.Upstream, c.Cooldown(*r).Seconds(), c.Cooldown(o).Seconds(), l.at(fmt.Sprintf("routes[%d].upstream", first)))
		}
	}
	return es
}

// trimSlash takes the slash off the end of a prefix, unless it is all there is.
func trimSlash(prefix string) string {
	if len(prefix) > 1 {
		return strings.TrimSuffix(prefix, "/")
	}
	return prefix
}

// badPrefix says why no request could match prefix, or why matching it would be doubtful.
func badPrefix(prefix string) string {
	if !strings.HasPrefix(prefix, "/") {
		return "must start with /"
	}
	for i := 0; i < len(prefix); i++ {
		switch ch := prefix[i]; {
		case ch <= ' ' || ch >= 0x7f:
			return "may hold visible ASCII only: write other bytes as %XX, as clients send them"
		case ch == '?' || ch == '#' || ch == '\\':
			return fmt.Sprintf("may not hold %q: matching looks at the path only", ch)
		case ch == '%':
			v, err := strconv.ParseUint(prefix[i+1:min(i+3, len(prefix))], 16, 8)
			if err != nil || i+3 > len(prefix) || v == 0 {
				return "has an escape that is not %01 to %FF"
			}
			if isUnreserved(byte(v)) {
				return fmt.Sprintf("would not match: write %s as %c", prefix[i:i+3], v)
			}
		}
	}
	for seg := range strings.SplitSeq(trimSlash(prefix)[1:], "/") {
		if seg == "." || seg == ".." || seg == "" && len(prefix) > 1 {
			return "may not hold empty or dot segments: requests with them never match"
		}
	}
	return ""
}

func isUnreserved(ch byte) bool {
	return ch|0x20 >= 'a' && ch|0x20 <= 'z' || ch >= '0' && ch <= '9' || strings.IndexByte("-._~", ch) >= 0
}

// badHostPort says why addr is no "host:port".
func badHostPort(addr string) string {
	host, port, ok := cutPort(addr)
	if !ok {
		return "has no port: write host:port"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return fmt.Sprintf("has the port %q: it must be a number from 1 to 65535", port)
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !a.Is6() || a.Zone() != "" || !strings.HasSuffix(inner, "]") {
			return "has brackets around what is not an IPv6 address"
		}
		return ""
	}
	if strings.Contains(host, ":") {
		return "needs brackets around its IPv6 address, as in [::1]:80"
	}
	return badHost(host)
}

// cutPort cuts at the last colon that is outside of brackets.
func cutPort(addr string) (host, port string, ok bool) {
	i := strings.LastIndexByte(addr, ':')
	if i < strings.LastIndexByte(addr, ']') || i < 0 {
		return addr, "", false
	}
	return addr[:i], addr[i+1:], true
}

func badHost(host string) string {
	name := strings.TrimSuffix(host, ".")
	if name == "" {
		return "has no host"
	}
	if strings.Trim(name, "0123456789.") == "" {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
			return "has a host that is neither a name nor an IPv4 address"
		}
		return ""
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || len(name) > 253 {
			return "has a host name with a part that is empty or too long"
		}
		for i := 0; i < len(label); i++ {
			if ch := label[i]; ch != '-' && ch != '_' && (!isUnreserved(ch) || ch == '~') {
				return fmt.Sprintf("has a host name with %q in it", ch)
			}
		}
	}
	return ""
}
