package netloop

import (
	"crypto/tls"
	"net"
	"time"
)

// TLS is the server's side of a TLS connection. Its handshake, which is all computing, takes place on
// a goroutine; then its socket may move to an event loop.
type TLS struct {
	*tls.Conn
	under *under
}

// under is what the tls.Conn sits on: a Conn as it is, or a tlsConn, which never waits.
type under struct{ net.Conn }

// Secure begins TLS on c, a Conn of the Goroutines engine.
func Secure(c Conn, config *tls.Config) *TLS {
	u := &under{c}
	return &TLS{tls.Server(u, config), u}
}

// On goes on with the same socket as c, after the handshake. What it returns is a Conn if c belongs to
// an event loop, and a tls.Conn otherwise.
func (t *TLS) On(c Conn) net.Conn {
	if s, ok := c.(socket); ok {
		over := &tlsConn{socket: s, tls: t.Conn}
		t.under.Conn = (*tlsUnder)(over)
		return over
	}
	t.under.Conn = c
	return t.Conn
}

// socket is a Conn of an event loop, with what reads and writes without waiting.
type socket interface {
	Conn
	usable(deadline int64) error   // why it cannot be used, if so
	mayRead() error                // the same, and lets others run first
	writable() error               // why one cannot write, if so
	awaitInput() error             // until receive may have something
	receive(b []byte) (int, error) // errNothing: nothing is there now
	offer(b []byte) int            // sends what there is room for now
}

// errNothing is a read that would have to wait. To crypto/tls it is temporary: it goes on with the same
// record the next time, wherever that record was interrupted.
var errNothing net.Error = nothing{}

type nothing struct{}

func (nothing) Error() string   { return "nothing to read yet" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

// tlsUnder is a tlsConn as tls.Conn sees it.
type tlsUnder tlsConn

func (u *tlsUnder) Read(b []byte) (int, error) { return u.receive(b) }

func (u *tlsUnder) Write(b []byte) (int, error) {
	if !u.unsent.add(b) {
		u.flooded = true
		return 0, errFlood
	}
	return len(b), nil
}

// Whoever uses crypto/tls here closes the socket and sets its deadlines.

func (*tlsUnder) Close() error                     { return nil }
func (*tlsUnder) SetDeadline(time.Time) error      { return nil }
func (*tlsUnder) SetReadDeadline(time.Time) error  { return nil }
func (*tlsUnder) SetWriteDeadline(time.Time) error { return nil }
