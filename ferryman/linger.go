package ferryman

import (
	"net"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// How long a client may go on sending what nobody reads, in all and without a pause, and how fast: the rest of
// an upload may be large, and must not be worth more than a small part of a processor.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 5 * time.Second
	lingerPiece = 1 << 20              // bytes
	lingerPace  = 8 * time.Millisecond // for one piece: 125 MiB/s
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
	begun := ex.Now() // the present piece
	end := begun.Add(limit)
	for n := 0; ; n += in.Buffered() {
		in.Discard(in.Buffered())
		if n >= lingerPiece {
			rest(ex, lingerPace-ex.Now().Sub(begun))
			n, begun = 0, ex.Now()
		}
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

// rest keeps a strand from its connection for a while.
func rest(ex netloop.Executor, d time.Duration) {
	if d > 0 {
		over := ex.NewGate()
		time.AfterFunc(d, func() { ex.Post(over.Open) })
		over.Wait()
	}
}
