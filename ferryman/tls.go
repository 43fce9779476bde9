package ferryman

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/certificate"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Certificate is a certificate chain with its key, read from two PEM files and read again when they change.
type Certificate = certificate.Pair

// LoadCertificate reads a pair. The error says which file is at fault and what to do.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	return certificate.Load(certFile, keyFile)
}

// serverTLS is the server's side of TLS: 1.2 and 1.3, and for 1.2 only what HTTP/2 allows (RFC 9113 section
// 9.2.2).
func serverTLS(cert *Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: cert.GetCertificate,
	}
}

// ServeTLS accepts TLS connections from l and serves HTTP/2 or HTTP/1.1, as the client chooses
// (ALPN). It returns as Serve does.
func (p *Proxy) ServeTLS(l net.Listener, cert *Certificate) error {
	p.certificates.Add(cert)
	p.logExpiries(time.Now())
	config := serverTLS(cert)
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
