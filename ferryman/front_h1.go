package ferryman

import (
	"net"
	"net/netip"
	"strconv"
	"time"

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

// origin is a request's head and what is known of who sent it: what the head for the upstream is
// made of, for both protocols.
type origin struct {
	req    *h1.Request
	secure bool
	peer   netip.Addr
	shown  string // peer as X-Forwarded-For has it
}

func originOf(raw netloop.Conn, conn net.Conn) origin {
	o := origin{secure: conn != net.Conn(raw)}
	o.peer, o.shown = peerOf(raw.RemoteAddr())
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
func (o *origin) appendHead(dst []byte, e *exchange) []byte {
	r := o.req
	dst = append(append(dst, r.Method()...), ' ')
	dst = append(r.AppendTarget(dst, e.route.cut), " HTTP/1.1\r\nHost: "...)
	if host := r.Host(); len(host) > 0 {
		dst = append(append(dst, host...), "\r\n"...)
	} else { // HTTP/1.0 without Host
		dst = append(append(dst, e.route.up.Addr()...), "\r\n"...)
	}
	trusted := e.snap.trusts(o.peer)
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
	case e.ask.chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case r.DeclaredLength() >= 0:
		dst = h1.AppendLength(dst, r.DeclaredLength())
	case e.ask.empty:
		dst = h1.AppendLength(dst, 0)
	}
	if e.ask.expect {
		dst = append(dst, "Expect: 100-continue\r\n"...)
	}
	if e.ask.upgrade {
		dst = r.AppendUpgrade(append(dst, "Connection: Upgrade\r\n"...))
	}
	return append(dst, "\r\n"...)
}

// appendForwarded appends X-Forwarded-For, X-Forwarded-Proto and Via. What a trusted peer said is
// kept, the peer's own address behind it.
func (o *origin) appendForwarded(dst []byte, trusted bool) []byte {
	dst = append(dst, "X-Forwarded-For: "...)
	proto := "http"
	if o.secure {
		proto = "https"
	}
	var said []byte
	if trusted {
		for i := range o.req.Fields {
			f := &o.req.Fields[i]
			switch value := o.req.ValueOf(f); {
			case len(value) == 0:
			case f.Kind == h1.ForwardedFor:
				dst = append(append(dst, value...), ", "...)
			case f.Kind == h1.ForwardedProto && said == nil:
				said = value
			}
		}
	}
	dst = append(append(dst, o.shown...), "\r\nX-Forwarded-Proto: "...)
	if said == nil {
		dst = append(dst, proto...)
	} else {
		dst = append(dst, said...)
	}
	return append(dst, "\r\nVia: 1.1 ferryman\r\n"...)
}

// appendUpgrade keeps the Upgrade lines of a 101.
func appendUpgrade(dst []byte, h *h1.Head) []byte {
	for i := range h.Fields {
		if f := &h.Fields[i]; f.Kind == h1.Upgrade {
			dst = append(append(dst, "Upgrade: "...), h.ValueOf(f)...)
			dst = append(dst, "\r\n"...)
		}
	}
	return dst
}

// trusts reports whether a peer's forwarding fields are believed.
func (s *snapshot) trusts(peer netip.Addr) bool {
	for _, p := range s.config.TrustedProxies {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

// appendHead is for one time only: the buffer that the head was read into is given back.
func (c *clientH1) appendHead(dst []byte, e *exchange) []byte {
	dst = c.origin.appendHead(dst, e)
	c.in.Trim()
	return dst
}

// stow keeps the head: it is no larger than what has come of it.
func (c *clientH1) stow(*exchange) {}

// reply sends an answer of ferryman's own, and announces the close where the connection is in
// doubt: after anything but a plain refusal, and where a body was not read.
func (c *clientH1) reply(f *fault, retryAfter time.Duration) {
	switch f.status {
	case 200, 404, 502, 503, 504, 508:
		c.shut = c.shut || !c.body.Done() || c.p.clients.draining.Load()
	default:
		c.shut = true
	}
	var scratch [512]byte
	answer := f.appendReply(scratch[:0], c.p.date(c.ex.Now()), retryAfter, c.req.HeadMethod, c.shut)
	if c.out.add(answer) != nil || c.out.flush() != nil {
		c.shut = true
	}
}

// interim relays a 1xx head; HTTP/1.0 knows none (RFC 9110 section 15.2).
func (c *clientH1) interim(r *h1.Response) error {
	if c.req.Old() {
		return nil
	}
	head := r.AppendKept(h1.AppendStatus(nil, r.Status, r.Reason()), &dropFromResponse)
	if err := c.out.add(append(head, "\r\n"...)); err != nil {
		return err
	}
	return c.out.flush()
}

// begin relays the final head, without sending it yet.
func (c *clientH1) begin(e *exchange) error {
	c.shut = c.shut || !e.read.Load() || c.p.clients.draining.Load()
	c.out.chunked = (e.framing == h1.Chunked || e.framing == h1.UntilClose) && !c.req.Old()
	e.head = c.appendResponse(e.head[:0], e)
	return c.out.add(e.head)
}

func (c *clientH1) appendResponse(dst []byte, e *exchange) []byte {
	r := &e.resp
	dst = h1.AppendStatus(dst, r.Status, r.Reason())
	drop := dropFromResponse
	drop[h1.Trailer] = !c.out.chunked
	dst = r.AppendKept(dst, &drop)
	if !hasDate(&r.Head) {
		dst = h1.AppendField(dst, "Date", c.p.date(c.ex.Now()))
	}
	switch n := e.contentLength(); {
	case e.tunnelling:
		return append(appendUpgrade(append(dst, "Connection: Upgrade\r\n"...), &r.Head), "\r\n"...)
	case n >= 0:
		dst = h1.AppendLength(dst, n)
	case c.out.chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if c.shut {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// contentLength is the Content-Length of the response as the client gets it, -1 for none.
func (e *exchange) contentLength() int64 {
	switch {
	case e.resp.Status == 205:
		return 0
	case e.resp.Status == 204 || e.resp.Status < 200:
		return -1
	case e.framing == h1.None: // HEAD and 304 may tell a length without a body
		return e.resp.DeclaredLength()
	case e.framing == h1.Length:
		return e.length
	}
	return -1
}

func hasDate(h *h1.Head) bool {
	for i := range h.Fields {
		if h.Fields[i].Kind == h1.Date {
			return true
		}
	}
	return false
}

func (c *clientH1) room() ([]byte, error) { return c.out.room() }

func (c *clientH1) commit(n int) error {
	c.out.commit(n)
	return nil
}

func (c *clientH1) flush() error { return c.out.flush() }

func (c *clientH1) end(trailer *h1.Head) error { return c.out.end(trailer) }
