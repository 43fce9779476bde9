package netloop

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// tlsConn is TLS on an event loop. crypto/tls holds locks while it reads and writes, so no coroutine may
// park in it: the next one to want the lock would stop the loop. Therefore tls.Conn reads what has
// arrived and writes into a buffer, and only its caller here, when it is out of there, waits.
type tlsConn struct {
	socket
	tls     *tls.Conn
	unsent  unsent
	writing bool  // a coroutine is sending unsent
	flooded bool  // crypto/tls had more to say than the peer took in
	ended   error // why there is nothing more to read

	ahead    [1]byte // a byte that Await has read: only decryption tells whether there is one
	hasAhead bool
}

var errFlood = errors.New("the peer has caused more answers of TLS than it reads")

func (c *tlsConn) Await() error {
	if err := c.mayRead(); err != nil {
		return err
	}
	for !c.hasAhead {
		n, err := c.pull(c.ahead[:])
		c.hasAhead = n == 1
		if err != errNothing {
			return nil // an end of stream or an error is for Read to tell
		}
		if err := c.awaitInput(); err != nil {
			return err
		}
	}
	return nil
}

func (c *tlsConn) Read(b []byte) (int, error) {
	if err := c.mayRead(); err != nil || len(b) == 0 {
		return 0, err
	}
	if c.hasAhead {
		b[0], c.hasAhead = c.ahead[0], false
		n, _ := c.pull(b[1:])
		return 1 + n, nil
	}
	for {
		n, err := c.pull(b)
		if err != errNothing {
			return n, err
		}
		if err := c.awaitInput(); err != nil {
			return 0, err
		}
	}
}

// pull reads what is there, and sends what that made crypto/tls write: an answer, an alert.
func (c *tlsConn) pull(b []byte) (int, error) {
	if c.ended != nil || len(b) == 0 {
		return 0, c.ended
	}
	n, err := c.tls.Read(b)
	if c.flooded {
		n, err = 0, errFlood
		c.Abort()
	}
	c.push()
	if err != errNothing {
		c.ended = err
	}
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// push sends what waits without waiting, unless a coroutine is at it.
func (c *tlsConn) push() {
	if b := c.unsent.bytes(); len(b) > 0 && !c.writing {
		c.unsent.took(c.offer(b))
	}
}

// maxPiece is what is encrypted at a time: several records, which are sent as one.
const maxPiece = 32 << 10

// Write returns how many bytes crypto/tls has taken. What of these the socket has not taken when the
// deadline passes is sent first by the next Write, an empty one included; the error is a lateWrite.
func (c *tlsConn) Write(b []byte) (int, error) {
	if err := c.writable(); err != nil {
		return 0, err
	}
	for done, taken := 0, false; ; {
		n, err := c.flush()
		taken = taken || n > 0
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = lateWrite{taken}
		}
		if err != nil || done == len(b) {
			return done, err
		}
		n, err = c.tls.Write(b[done:min(len(b), done+maxPiece)])
		if done += n; err != nil {
			return done, err
		}
	}
}

// flush sends what waits, and returns how much of it the socket has taken.
func (c *tlsConn) flush() (sent int, err error) {
	c.writing = true
	defer func() { c.writing = false }()
	for err == nil && len(c.unsent.bytes()) > 0 {
		var n int
		n, err = c.socket.Write(c.unsent.bytes())
		c.unsent.took(n)
		sent += n
	}
	return sent, err
}

// lateWrite is the deadline of a Write that has passed.
type lateWrite struct{ taken bool }

func (lateWrite) Error() string   { return os.ErrDeadlineExceeded.Error() }
func (lateWrite) Unwrap() error   { return os.ErrDeadlineExceeded }
func (lateWrite) Timeout() bool   { return true }
func (lateWrite) Temporary() bool { return true }

// Taken reports whether the peer took anything during that Write.
func (l lateWrite) Taken() bool { return l.taken }

func (c *tlsConn) Quiet() bool      { return c.socket.Quiet() && c.nothingAhead() }
func (c *tlsConn) SeemsQuiet() bool { return c.socket.SeemsQuiet() && c.nothingAhead() }

// nothingAhead reports whether nothing can be read of what crypto/tls holds.
func (c *tlsConn) nothingAhead() bool {
	if !c.hasAhead {
		n, err := c.pull(c.ahead[:])
		c.hasAhead = n == 1
		return err == errNothing
	}
	return false
}

// closeWait is for how long CloseWrite waits for room, as crypto/tls does.
const closeWait = 5 * time.Second

// CloseWrite says that no more will come (close_notify) and leaves the socket open, as crypto/tls does.
// It counts as a Write.
func (c *tlsConn) CloseWrite() error {
	if err := c.usable(0); err != nil {
		return err
	}
	if err := c.tls.CloseWrite(); err != nil {
		return err
	}
	c.SetWriteDeadline(time.Now().Add(closeWait))
	_, err := c.flush()
	return err
}

// Close says close_notify if there is room for it. After an Abort it does not.
func (c *tlsConn) Close() error {
	if c.usable(0) == nil {
		c.tls.Close()
		c.push()
	}
	c.forget()
	return c.socket.Close()
}

func (c *tlsConn) Reset() error {
	c.forget()
	return c.socket.Reset()
}

// forget gives the buffer back, unless a coroutine that waits has it in its hands.
func (c *tlsConn) forget() {
	if !c.writing {
		c.unsent.drop()
	}
}

func (c *tlsConn) MoveTo(to Executor, handle func(Executor, Conn)) {
	c.socket.MoveTo(to, func(ex Executor, moved Conn) {
		c.socket = moved.(socket)
		handle(ex, c)
	})
}

// Detach would leave the keys behind.
func (c *tlsConn) Detach() (net.Conn, error) { return nil, errors.ErrUnsupported }
