package frontend

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// Certificates choose a certificate for a handshake, as tls.Config.GetCertificate does.
type Certificates interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// serverTLS is the server's side of TLS: 1.2 and 1.3, and for 1.2 only what HTTP/2 allows (RFC 9113 section
// 9.2.2).
func serverTLS(certificates Certificates) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: certificates.GetCertificate,
	}
}

// ServeTLS accepts TLS connections from l and serves HTTP/2 or HTTP/1.1, as the client chooses
// (ALPN). It returns as Serve does.
func (s *Server) ServeTLS(l net.Listener, certificates Certificates) error {
	config := serverTLS(certificates)
	_, tcp := l.(*net.TCPListener)
	onLoops := tcp && s.Engine != netloop.Engine(s.Goroutines)
	return s.serve(s.Goroutines, l, func(ex netloop.Executor, raw netloop.Conn) {
		entry := newEntry(raw)
		if !s.connections.add(entry, s.maxConnections()) {
			raw.Close()
			return
		}
		conn := netloop.Secure(raw, config)
		raw.SetDeadline(ex.Now().Add(s.HandshakeTimeout))
		if err := conn.HandshakeContext(context.Background()); err != nil {
			s.Log.Debug("handshake failed", "error", err)
			s.refusePlaintext(ex, raw, err)
			s.connections.remove(entry)
			raw.Close()
			return
		}
		raw.SetDeadline(time.Time{})
		serve := s.serveH1
		if conn.ConnectionState().NegotiatedProtocol == "h2" {
			serve = s.serveH2
		}
		if onLoops {
			s.moveToLoop(raw, conn, entry, serve)
		} else {
			serve(ex, raw, conn.Conn, entry)
		}
	})
}

// moveToLoop goes on with a connection on an event loop, once its handshake, which would hold up all others
// there, is over.
func (s *Server) moveToLoop(raw netloop.Conn, conn *netloop.TLS, e *entry, serve func(netloop.Executor, netloop.Conn, net.Conn, *entry)) {
	plain, err := raw.Detach()
	if err != nil {
		s.connections.remove(e)
		raw.Close()
		return
	}
	err = s.Engine.Take(plain, func(ex netloop.Executor, raw netloop.Conn) {
		moved := newEntry(raw)
		added := s.connections.add(moved, 0) // the old entry stood for the same connection
		s.connections.remove(e)
		if !added {
			raw.Close()
			return
		}
		serve(ex, raw, conn.On(raw), moved)
	})
	if err != nil { // for want of a descriptor
		raw = s.Goroutines.Adopt(plain)
		serve(s.Goroutines, raw, conn.On(raw), e)
	}
}
