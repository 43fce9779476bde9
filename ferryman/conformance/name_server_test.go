package conformance

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers queries over UDP on loopback.
type nameServer struct {
	conn net.PacketConn

	mu      sync.Mutex
	addrs   map[string][]netip.Addr
	queries map[string]int // A and AAAA are one
}

func newNameServer(t testing.TB) *nameServer {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &nameServer{conn: conn, addrs: map[string][]netip.Addr{}, queries: map[string]int{}}
	t.Cleanup(func() { conn.Close() })
	go s.serve()
	return s
}

func (s *nameServer) addr() string { return s.conn.LocalAddr().String() }

// asking is a resolver that asks one name server and nobody else.
func asking(addr string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", addr)
	}}
}

// is sets what a name resolves to; nothing: there is no such name.
func (s *nameServer) is(name string, addrs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs[name] = nil
	for _, a := range addrs {
		s.addrs[name] = append(s.addrs[name], netip.MustParseAddr(a))
	}
}

func (s *nameServer) asked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[name]
}

func (s *nameServer) serve() {
	b := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.mu.Lock()
		if m.Questions[0].Type == dnsmessage.TypeA {
			s.queries[strings.ToLower(m.Questions[0].Name.String())]++
		}
		s.mu.Unlock()
		if answer, err := s.answer(m); err == nil {
			s.conn.WriteTo(answer, from)
		}
	}
}

func (s *nameServer) answer(m dnsmessage.Message) ([]byte, error) {
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionAvailable: true}
	m.Additionals = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	addrs := s.addrs[strings.ToLower(q.Name.String())]
	if len(addrs) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			r.Body = &dnsmessage.AResource{A: a.As4()}
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, r)
	}
	return m.Pack()
}
