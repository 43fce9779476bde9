package ferryman

import (
	"net"
	"sync"

	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// dial opens a connection to the upstream. It is over at once when the client goes away; what the dial
// comes to is nobody's then, and is closed.
func (e *exchange) dial() (*upstream.Conn, error) {
	d := &dialling{ended: e.ex.NewGate()}
	e.client.guard(d)
	ex, up, timeout := e.ex, e.route.up, e.snap.config.ConnectTimeout
	ex.Go(func() {
		defer d.end(nil, net.ErrClosed) // lest a panic leave the exchange waiting
		c, err := up.Dial(ex, timeout)
		if !d.end(c, err) && err == nil {
			c.Discard()
		}
	})
	d.ended.Wait()
	e.client.guard(nil)
	return d.conn, d.err
}

// dialling is a dial and who waits for it. As what a guard ends, it is over before its outcome is there.
type dialling struct {
	ended netloop.Gate

	mu   sync.Mutex // guards what follows, until ended is open
	over bool
	conn *upstream.Conn
	err  error
}

func (d *dialling) Abort() { d.end(nil, errClientGone) }

// end returns whether somebody takes the outcome.
func (d *dialling) end(c *upstream.Conn, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return false
	}
	d.over, d.conn, d.err = true, c, err
	d.ended.Open()
	return true
}
