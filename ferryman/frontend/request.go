package frontend

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// kinds is a set of field kinds.
type kinds = [h1.NotInTrailer + 1]bool

func set(members ...h1.Kind) (k kinds) {
	for _, m := range members {
		k[m] = true
	}
	return k
}

// What never goes further: hop-by-hop fields (RFC 9110 section 7.6.1), aliases, and what ferryman
// writes itself. This is the one place that decides it, for both protocols.
var (
	hopByHop = []h1.Kind{h1.Dropped, h1.Alias, h1.Connection, h1.KeepAlive, h1.TransferEncoding,
		h1.ContentLength, h1.Upgrade, h1.TE, h1.ProxyAuth}
	ofRequest = append([]h1.Kind{h1.Host, h1.Trailer, h1.Expect, h1.ForwardedFor, h1.ForwardedProto}, hopByHop...)

	dropFromTrusted   = set(ofRequest...)
	dropFromUntrusted = set(append(ofRequest, h1.Forwarding)...)
	dropFromResponse  = set(hopByHop...)
)

// sender is the client's request head and address, from which the head for the upstream is built,
// for both protocols.
type sender struct {
	req      *h1.Request
	secure   bool
	peer     netip.Addr
	peerText string // peer as X-Forwarded-For has it
}

func senderOf(raw netloop.Conn, conn net.Conn) sender {
	o := sender{secure: conn != net.Conn(raw)}
	o.peer, o.peerText = peerOf(raw.RemoteAddr())
	return o
}

// peerOf takes a client's address without port, zone and IPv4 mapping.
func peerOf(a net.Addr) (netip.Addr, string) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, "unknown"
	}
	peer := t.AddrPort().Addr().Unmap().WithZone("")
	return peer, peer.String()
}

// appendHead writes the request's head for the upstream. The fields that stay are copied as
// ranges; ferryman's own follow.
func (o *sender) appendHead(dst []byte, e *exchange.Exchange) []byte {
	r := o.req
	dst = append(append(dst, r.Method()...), ' ')
	dst = append(r.AppendTarget(dst, e.Route().Cut), " HTTP/1.1\r\nHost: "...)
	if host := r.Host(); len(host) > 0 {
		dst = append(append(dst, host...), "\r\n"...)
	} else { // HTTP/1.0 without Host
		dst = append(append(dst, e.Route().Upstream.Addr()...), "\r\n"...)
	}
	trusted := isTrusted(e.Snapshot().TrustedProxies, o.peer)
	drop := dropFromUntrusted
	if trusted {
		drop = dropFromTrusted
	}
	drop[h1.MaxForwards] = r.MaxForwards > 0
	dst = r.AppendKept(dst, &drop)
	if drop[h1.MaxForwards] {
		dst = h1.AppendField(dst, "Max-Forwards", strconv.FormatInt(r.MaxForwards-1, 10))
	}
	dst = o.appendForwarded(dst, trusted)
	switch {
	case e.Request.Chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case r.DeclaredLength() >= 0:
		dst = h1.AppendLength(dst, r.DeclaredLength())
	case e.Request.Empty:
		dst = h1.AppendLength(dst, 0)
	}
	if e.Request.Expect {
		dst = append(dst, "Expect: 100-continue\r\n"...)
	}
	if e.Request.Upgrade {
		dst = r.AppendUpgrade(append(dst, "Connection: Upgrade\r\n"...))
	}
	return append(dst, "\r\n"...)
}

// appendForwarded appends X-Forwarded-For, X-Forwarded-Proto and Via. What a trusted peer has sent is
// kept, the peer's own address behind it.
func (o *sender) appendForwarded(dst []byte, trusted bool) []byte {
	dst = append(dst, "X-Forwarded-For: "...)
	proto := "http"
	if o.secure {
		proto = "https"
	}
	var proxied []byte
	if trusted {
		for i := range o.req.Fields {
			f := &o.req.Fields[i]
			switch value := o.req.ValueOf(f); {
			case len(value) == 0:
			case f.Kind == h1.ForwardedFor:
				dst = append(append(dst, value...), ", "...)
			case f.Kind == h1.ForwardedProto && proxied == nil:
				proxied = value
			}
		}
	}
	dst = append(append(dst, o.peerText...), "\r\nX-Forwarded-Proto: "...)
	if proxied == nil {
		dst = append(dst, proto...)
	} else {
		dst = append(dst, proxied...)
	}
	return append(dst, "\r\nVia: 1.1 ferryman\r\n"...)
}

// isTrusted reports whether a peer's forwarding fields are trusted.
func isTrusted(proxies []netip.Prefix, peer netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(peer) })
}
