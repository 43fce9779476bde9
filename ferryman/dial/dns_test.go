package dial_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers queries over UDP on loopback.
type nameServer struct {
	conn net.PacketConn

	mu      sync.Mutex
	addrs   map[string][]netip.Addr
	queries map[string]int // A and AAAA are one
	hold    chan struct{}  // answers wait until it is closed; nil: they do not
}

func newNameServer(t testing.TB) *nameServer {
	s, err := nameServerOn("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { s.conn.Close() })
	return s
}

func nameServerOn(addr string) (*nameServer, error) {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	s := &nameServer{conn: conn, addrs: map[string][]netip.Addr{}, queries: map[string]int{}}
	go s.serve()
	return s, nil
}

// resolver asks s and nobody else.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
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

// held makes answers wait until release is called.
func (s *nameServer) held() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = make(chan struct{})
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.hold)
		s.hold = nil
	})
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
		hold := s.hold
		if m.Questions[0].Type == dnsmessage.TypeA {
			s.queries[strings.ToLower(m.Questions[0].Name.String())]++
		}
		s.mu.Unlock()
		go func() {
			if hold != nil {
				<-hold
			}
			if answer, err := s.answer(m); err == nil {
				s.conn.WriteTo(answer, from)
			}
		}()
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

// patience is how long a test waits for what must happen; nothing waits that long if it does.
const patience = 15 * time.Second
