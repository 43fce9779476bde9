package engine

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

// target is a Target worked out.
type target struct {
	index   int
	name    string
	url     wire.URL
	request wire.Request
	bytes   []byte // the whole request
	addr    netip.AddrPort
	status  int
	expect  wire.Expectation
}

func (p *Plan) newTarget(ctx context.Context, index int, t Target) (*target, error) {
	t.Close = p.NoKeepAlive
	u, err := wire.ParseURL(t.URL)
	if err != nil {
		return nil, err
	}
	b, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	if t.Status != 0 && (t.Status < 200 || t.Status > 599) {
		return nil, fmt.Errorf("expected status %d: it is 200 to 599", t.Status)
	}
	addr, err := resolve(ctx, u.Host)
	if err != nil {
		return nil, err
	}
	if !p.AllowRemote && !near(addr.Addr()) {
		return nil, fmt.Errorf("%s is %s, neither loopback nor private: load on a machine of others is an attack; --allow-remote says that it is yours", t.URL, addr.Addr())
	}
	name := t.Name
	if name == "" {
		name = t.URL
	}
	return &target{
		index: index, name: name, url: u, request: t.Request, bytes: b, addr: addr, status: t.Status,
		expect: wire.Expectation{NoBody: t.Verb() == "HEAD", Exact: t.Expect != nil, Body: t.Expect},
	}, nil
}

// resolve looks a host up once, IPv4 first: the run must not measure a resolver.
func resolve(ctx context.Context, hostport string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return netip.AddrPort{}, err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", host, err)
	}
	chosen := addrs[0].Unmap()
	for _, a := range addrs {
		if a.Unmap().Is4() {
			chosen = a.Unmap()
			break
		}
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(chosen, uint16(n)), nil
}

// near reports whether an address belongs to this machine or a private network.
func near(a netip.Addr) bool {
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()
}

// refusalBody is what the proxy answers with Retry-After while a circuit is open.
var refusalBody = []byte("upstream unavailable")

// classify judges a whole answer.
func (t *target) classify(s *wire.Scanner) result.Class {
	return t.judge(s.Status, s.RetryAfter, s.Snippet(), s.Right())
}

func (t *target) judge(status int, retryAfter bool, snippet []byte, right bool) result.Class {
	switch {
	case status == 503 && t.status != 503 && retryAfter && bytes.Equal(bytes.TrimRight(snippet, "\r\n"), refusalBody):
		return result.Refused
	case t.status != 0 && status != t.status, t.status == 0 && status >= 400:
		return result.Status
	case !right:
		return result.WrongBody
	}
	return result.OK
}
