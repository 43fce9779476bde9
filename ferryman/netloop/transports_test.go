package netloop_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// overTLS serves TLS on event loops: each connection moves there after its handshake.
type overTLS struct {
	netloop.Engine
	handshakes *netloop.GoroutineEngine
}

func (o overTLS) Serve(l net.Listener, handle func(netloop.Executor, netloop.Conn)) error {
	return o.handshakes.Serve(l, func(_ netloop.Executor, c netloop.Conn) {
		conn := netloop.Secure(c, serverConfig())
		plain, err := net.Conn(nil), conn.Handshake()
		if err == nil {
			plain, err = c.Detach()
		}
		if err != nil {
			c.Close()
			return
		}
		if o.Take(plain, func(ex netloop.Executor, c netloop.Conn) { handle(ex, conn.On(c).(netloop.Conn)) }) != nil {
			plain.Close()
		}
	})
}

func (o overTLS) Close() error {
	o.handshakes.Close()
	return o.Engine.Close()
}

// transports returns the engines, and TLS on event loops where there are any.
func transports(t testing.TB, o netloop.Options) map[string]netloop.Engine {
	t.Helper()
	all := engines(t, o)
	if loops := engines(t, o)["loops"]; loops != nil {
		e := overTLS{loops, netloop.Goroutines(o)}
		t.Cleanup(func() { e.Close() })
		all["TLS on loops"] = e
	}
	return all
}

// forEachTransport is forEachEngine with TLS on event loops beside.
func forEachTransport(t *testing.T, body func(t *testing.T, e netloop.Engine)) {
	t.Helper()
	forEachOf(t, transports(t, netloop.Options{Loops: 2}), body)
}

// secured are the addresses at which a client must speak TLS.
var secured sync.Map

// mark has clients of l speak what e serves.
func mark(e netloop.Engine, l net.Listener) {
	if same, ok := e.(sameEngine); ok {
		e = same.Engine
	}
	if _, ok := e.(overTLS); ok {
		secured.Store(l.Addr().String(), true)
	}
}

// peer is the client of a served address, in plain text or over TLS.
type peer struct {
	*net.TCPConn
	over net.Conn
}

func newPeer(c *net.TCPConn, addr string) (*peer, error) {
	if _, ok := secured.Load(addr); !ok {
		return &peer{c, c}, nil
	}
	over := tls.Client(c, clientConfig)
	return &peer{c, over}, over.Handshake()
}

func (p *peer) Read(b []byte) (int, error)  { return p.over.Read(b) }
func (p *peer) Write(b []byte) (int, error) { return p.over.Write(b) }

// ReadFrom and WriteTo must not go past TLS.
func (p *peer) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{p.over}, r) }
func (p *peer) WriteTo(w io.Writer) (int64, error)  { return io.Copy(w, struct{ io.Reader }{p.over}) }

func (p *peer) CloseWrite() error {
	if over, ok := p.over.(*tls.Conn); ok {
		if err := over.CloseWrite(); err != nil {
			return err
		}
	}
	return p.TCPConn.CloseWrite()
}

var clientConfig = &tls.Config{InsecureSkipVerify: true}

// serverConfig has a certificate that is made once.
var serverConfig = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	// Without tickets a server sends nothing of its own accord.
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, SessionTicketsDisabled: true}
})
