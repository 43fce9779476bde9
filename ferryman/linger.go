package ferryman

import (
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// How long a client may go on sending what nobody reads: in all, without a pause, and in bytes.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 5 * time.Second
	lingerBytes = 64 << 20
)

// linger closes in a way that lets the client read the reply to its end.
func (c *clientH1) linger() {
	limit := lingerTime
	if c.p.clients.draining.Load() {
		limit = time.Second
	}
	linger(c.ex, &c.in, c.conn, limit)
}

// linger ends the sending side, then what the client still sends is thrown away for a while or to
// its end: a close with bytes unread would destroy what it has not read yet (RFC 9112 section 9.6).
func linger(ex netloop.Executor, in *h1.Reader, conn net.Conn, limit time.Duration) {
	in.Release()
	if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	end := ex.Now().Add(limit)
	for n := 0; n < lingerBytes; n += in.Buffered() {
		in.Discard(in.Buffered())
		until := ex.Now().Add(lingerPause)
		if until.After(end) {
			until = end
		}
		conn.SetReadDeadline(until)
		if in.Fill() != nil {
			return
		}
	}
}
