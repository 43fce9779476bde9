package ferryman

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Certificate is a certificate chain with its key, read from two PEM files and read again when
// they change.
type Certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[pair]
}

// pair is what the two files held.
type pair struct {
	cert, key []byte
	parsed    tls.Certificate
}

// LoadCertificate reads a pair. The error says which file is at fault and what to do.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	if _, err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// load reads the pair and puts it in use if it is new and whole.
func (c *Certificate) load() (changed bool, err error) {
	cert, err := readSmall(c.certFile)
	if err != nil {
		return false, fmt.Errorf("TLS certificate: %w", err)
	}
	key, err := readSmall(c.keyFile)
	if err != nil {
		return false, fmt.Errorf("TLS key: %w", err)
	}
	if old := c.current.Load(); old != nil && bytes.Equal(cert, old.cert) && bytes.Equal(key, old.key) {
		return false, nil
	}
	parsed, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, fmt.Errorf("TLS pair %s and %s: %w: use a PEM certificate and the key it was issued for", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair{cert, key, parsed})
	return true, nil
}

// readSmall reads a regular file of at most 1 MiB.
func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file: name a PEM file", name)
	case info.Size() > 1<<20:
		return nil, fmt.Errorf("%s is larger than 1 MiB: name a PEM file", name)
	}
	return os.ReadFile(name)
}

// certificatePoll is how often the files are looked at. They are small, and a rename, a symlink
// swap and a write in place all look the same this way.
const certificatePoll = 500 * time.Millisecond

// Watch reads the files again when they change, or at once on poke (may be nil), until ctx ends,
// and reports each change and each new failure. A pair that does not match, as between the writing
// of one file and of the other, leaves the old one in use.
func (c *Certificate) Watch(ctx context.Context, poke <-chan struct{}, report func(error)) {
	tick := time.NewTicker(certificatePoll)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-poke:
		}
		changed, err := c.load()
		switch {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			report(err)
		case changed:
			report(nil)
		}
		if err == nil {
			failed = ""
		}
	}
}

// config is the server's side of TLS: 1.2 and 1.3, and for 1.2 only what HTTP/2 allows (RFC 9113
// section 9.2.2).
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.current.Load().parsed, nil },
	}
}

// ServeTLS accepts TLS connections from l and serves HTTP/2 or HTTP/1.1, as the client chooses
// (ALPN). It returns as Serve does.
func (p *Proxy) ServeTLS(l net.Listener, cert *Certificate) error {
	config := cert.config()
	_, tcp := l.(*net.TCPListener)
	onLoops := tcp && p.engine != netloop.Engine(p.goroutines)
	return p.serve(p.goroutines, l, func(ex netloop.Executor, raw netloop.Conn) {
		entry := newClient(raw)
		if !p.clients.add(entry, p.maxConnections()) {
			raw.Close()
			return
		}
		conn := netloop.Secure(raw, config)
		raw.SetDeadline(ex.Now().Add(p.handshake))
		if err := conn.HandshakeContext(context.Background()); err != nil {
			p.log.Debug("handshake failed", "error", err)
			p.refusePlaintext(ex, raw, err)
			p.clients.remove(entry)
			raw.Close()
			return
		}
		raw.SetDeadline(time.Time{})
		serve := p.serveH1
		if conn.ConnectionState().NegotiatedProtocol == "h2" {
			serve = p.serveH2
		}
		if onLoops {
			p.moveToLoop(raw, conn, entry, serve)
		} else {
			serve(ex, raw, conn.Conn, entry)
		}
	})
}

// moveToLoop goes on with a connection on an event loop, once its handshake, which would hold up all others
// there, is over.
func (p *Proxy) moveToLoop(raw netloop.Conn, conn *netloop.TLS, entry *client, serve func(netloop.Executor, netloop.Conn, net.Conn, *client)) {
	plain, err := raw.Detach()
	if err != nil {
		p.clients.remove(entry)
		raw.Close()
		return
	}
	err = p.engine.Take(plain, func(ex netloop.Executor, raw netloop.Conn) {
		moved := newClient(raw)
		added := p.clients.add(moved, 0) // the old entry stood for the same connection
		p.clients.remove(entry)
		if !added {
			raw.Close()
			return
		}
		serve(ex, raw, conn.On(raw), moved)
	})
	if err != nil { // for want of a descriptor
		raw = p.goroutines.Adopt(plain)
		serve(p.goroutines, raw, conn.On(raw), entry)
	}
}
