package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// soakAborts is how many requests in a hundred are not waited for.
const soakAborts = 1

func abandons(o order) bool { return rand.IntN(100) < soakAborts || o.hangs && rand.IntN(2) == 0 }

// dialTCP is the rig's dial without its records.
func (s *soak) dialTCP() (*net.TCPConn, error) {
	d := net.Dialer{Timeout: patience}
	nc, err := d.Dial("tcp", s.r.addr)
	if err != nil {
		s.fail("dial: %v", err)
		return nil, err
	}
	return nc.(*net.TCPConn), nil
}

func (s *soak) dial() (net.Conn, *net.TCPConn) {
	tc, err := s.dialTCP()
	if err != nil || !s.r.mode.tls {
		return tc, tc
	}
	_ = tc.SetDeadline(time.Now().Add(patience))
	c := tls.Client(tc, clientTLS)
	if err := c.Handshake(); err != nil {
		s.fail("handshake: %v", err)
		tc.Close()
		return nil, nil
	}
	return c, tc
}

// dialH2 leaves the protocol to the standard library.
func (s *soak) dialH2() (cc *http.ClientConn, tc *net.TCPConn) {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, TLSClientConfig: clientTLS.Clone()}
	tr.TLSClientConfig.NextProtos = nil
	tr.DialContext = func(context.Context, string, string) (_ net.Conn, err error) {
		tc, err = s.dialTCP()
		return tc, err
	}
	scheme := "http"
	if s.r.mode.tls {
		scheme = "https"
		tr.Protocols.SetHTTP2(true)
	} else {
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	cc, err := tr.NewClientConn(context.Background(), scheme, s.r.addr)
	if err != nil {
		s.fail("HTTP/2: %v", err)
		return nil, nil
	}
	return cc, tc
}

// leave ends a client's connection as clients do: in order, at once, or by ending its side only.
func leave(c net.Conn, tc *net.TCPConn) {
	switch rand.IntN(3) {
	case 0:
		_ = tc.SetLinger(0)
	case 1:
		_ = tc.CloseWrite()
	}
	c.Close()
	tc.Close()
}

// clientH1 opens one connection after another.
func (s *soak) clientH1() {
	for !s.over.Load() {
		c, tc := s.dial()
		if tc == nil {
			return
		}
		w := newWireReader(c)
		for goOn := true; goOn && !s.over.Load(); {
			_ = tc.SetDeadline(time.Now().Add(patience))
			orders := []order{s.order()}
			for rand.IntN(10) == 0 && len(orders) < 4 && orders[0].route == "/steady" { // pipelined
				orders = append(orders, order{route: "/steady", path: "/steady", method: "GET", nonce: nonce(), up: -1, want: soakSize()})
			}
			goOn = s.ask(c, tc, w, orders)
			s.done(orders[0])
		}
		c.Close()
		tc.Close()
	}
}

// raw is a request on the wire.
func (o order) raw() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: a\r\n", o.method, o.path)
	for f := o.fields(); len(f) > 0; f = f[2:] {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	switch body := pattern(o.nonce, o.up); {
	case o.up < 0:
		b.WriteString("\r\n")
	case o.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n" + inChunks(body) + "0\r\n\r\n")
	default:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", o.up, body)
	}
	return b.String()
}

// ask sends some requests and reads their answers. false: the connection is of no more use.
func (s *soak) ask(c net.Conn, tc *net.TCPConn, w *wireReader, orders []order) bool {
	raw := ""
	for _, o := range orders {
		raw += o.raw()
	}
	if abandons(orders[0]) {
		s.abandon(c, tc, raw, orders)
		return false
	}
	_, _ = io.WriteString(c, raw) // what went wrong shows in the answer
	for i, o := range orders {
		m, err := w.responseHead(o.method)
		for err == nil && m.status < 200 {
			m, err = w.responseHead(o.method)
		}
		if err != nil {
			s.fail("%s %s, %d of %d: no answer: %v", o.method, o.path, i, len(orders), err)
			s.left(o)
			return false
		}
		err = w.readBody(m)
		s.answered(o, outcome{m.status, m.get, m.body, err})
		if err != nil || strings.EqualFold(m.get("Connection"), "close") {
			for _, rest := range orders[i+1:] {
				s.fail("%s: closed before the pipelined %s", o.path, rest.path)
			}
			return false
		}
	}
	return true
}

// abandon goes away at some byte of the requests or of the answers, or while it waits for them.
func (s *soak) abandon(c net.Conn, tc *net.TCPConn, raw string, orders []order) {
	for _, o := range orders {
		s.left(o)
	}
	if n := rand.IntN(2 * len(raw)); n < len(raw) && !orders[0].hangs {
		raw = raw[:n]
	}
	if _, err := io.WriteString(c, raw); err == nil && rand.IntN(2) == 0 {
		_ = tc.SetReadDeadline(time.Now().Add(time.Duration(rand.IntN(30)) * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c, rand.Int64N(int64(orders[0].want)+300))
	}
	leave(c, tc)
}

// clientH2 opens one connection after another, each for some hundred requests on a few streams at once.
func (s *soak) clientH2() {
	for !s.over.Load() {
		cc, tc := s.dialH2()
		if cc == nil {
			return
		}
		var cut atomic.Bool // by this side, in the middle of everything
		var streams sync.WaitGroup
		for range soakStreams {
			streams.Go(func() {
				for range 20 + rand.IntN(200) {
					if s.over.Load() || cut.Load() {
						return
					}
					o := s.order()
					s.askH2(cc, &cut, o)
					s.done(o)
					if rand.IntN(400) == 0 {
						cut.Store(true)
						leave(tc, tc)
					}
				}
			})
		}
		streams.Wait()
		cc.Close()
	}
}

var errSoakBody = errors.New("the body is not to be had")

// askH2 is one request on a stream.
func (s *soak) askH2(cc *http.ClientConn, cut *atomic.Bool, o order) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	abandoned, part := abandons(o), 3
	body := pattern(o.nonce, o.up)
	if abandoned {
		part = rand.IntN(3)
	}
	var sent io.Reader
	switch {
	case o.up < 0:
	case abandoned && part == 0: // in the upload
		sent = io.MultiReader(strings.NewReader(body[:rand.IntN(len(body)+1)]), failingReader{})
	default:
		sent = struct{ io.Reader }{strings.NewReader(body)}
	}
	req, err := http.NewRequestWithContext(ctx, o.method, "https://a"+o.path, sent)
	if err != nil {
		panic(err)
	}
	for f := o.fields(); len(f) > 0; f = f[2:] {
		req.Header.Set(f[0], f[1])
	}
	if o.up >= 0 && !o.chunked {
		req.ContentLength = int64(o.up)
	}
	if abandoned && part == 1 { // while it waits, as a rule
		time.AfterFunc(time.Duration(rand.IntN(10_000))*time.Microsecond, cancel)
	}
	resp, err := cc.RoundTrip(req)
	if err != nil {
		s.left(o)
		if !abandoned && !cut.Load() {
			s.fail("%s %s: no answer on a stream: %v", o.method, o.path, err)
		}
		return
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		s.fail("%s", resp.Proto)
	}
	if abandoned { // in the answer, unless it was too late to leave
		_, _ = io.CopyN(io.Discard, resp.Body, rand.Int64N(int64(o.want)+1))
		s.count(o, func(r *soakTally) { r.answered[resp.StatusCode]++; r.left++ })
		return
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil && cut.Load() {
		s.count(o, func(r *soakTally) { r.answered[resp.StatusCode]++; r.left++ })
		return
	}
	s.answered(o, outcome{resp.StatusCode, resp.Header.Get, got, err})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errSoakBody }
