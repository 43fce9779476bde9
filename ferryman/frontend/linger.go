package frontend

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
	lingerDrain = time.Second // during a drain
	lingerPause = 5 * time.Second
	lingerPiece = 1 << 20              // bytes
	lingerPace  = 8 * time.Millisecond // for one piece: 125 MiB/s
)

// linger closes in a way that lets the client read the reply to its end: it ends the sending side, then
// what the client still sends is thrown away for a while or to its end. A close with bytes unread would
// destroy what it has not read yet (RFC 9112 section 9.6).
func (s *Server) linger(ex netloop.Executor, in *h1.Reader, conn net.Conn, limit time.Duration) {
	in.Release()
	if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	begun := ex.Now()
	piece := begun
	for n := 0; ; n += in.Buffered() {
		in.Discard(in.Buffered())
		if n >= lingerPiece {
			pause(ex, lingerPace-ex.Now().Sub(piece))
			n, piece = 0, ex.Now()
		}
		if s.Draining() {
			limit = min(limit, lingerDrain)
		}
		until, end := ex.Now().Add(lingerPause), begun.Add(limit)
		if until.After(end) {
			until = end
		}
		conn.SetReadDeadline(until)
		if in.Fill() != nil {
			return
		}
	}
}

// pause waits for a time, on either executor.
func pause(ex netloop.Executor, d time.Duration) {
	if d > 0 {
		over := ex.NewEvent()
		time.AfterFunc(d, func() { ex.Post(over.Set) })
		over.Wait()
	}
}
