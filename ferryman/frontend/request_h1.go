package frontend

import (
	"errors"
	"os"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
)

// maxEmptyLines is how many empty lines may come before a request: RFC 9112 section 2.2 asks for one at least.
const maxEmptyLines = 100

// awaitRequest waits for the first byte of a request, and holds no buffer meanwhile. Empty lines begin none:
// there are clients that end a body with one.
func (c *connH1) awaitRequest() bool {
	left := maxEmptyLines
	for waiting := false; ; waiting = true {
		n, half := c.in.SkipEmptyLines(left)
		left -= n
		c.begun = c.begun || n > 0
		c.in.Trim()
		if c.in.Buffered() > 0 && !half {
			return true
		}
		if !waiting {
			c.body = h1.Body{} // with what it keeps of a trailer section
			c.conn.SetReadDeadline(c.ex.Now().Add(c.srv.shared.Snapshot.Load().ClientIdleTimeout))
		}
		if c.in.Fill() != nil {
			return false
		}
	}
}

var errPreface = errors.New("HTTP/2 preface")

// readHead reads a request head. The limit on it is absolute and starts with its first byte.
func (c *connH1) readHead() error {
	c.req.Reset()
	for limited := false; ; {
		if done, err := c.parse(); done || err != nil {
			return err
		}
		if !limited {
			limited = true
			c.conn.SetReadDeadline(c.ex.Now().Add(c.srv.HeadTimeout))
		}
		if err := c.in.Fill(); err != nil {
			return err
		}
	}
}

// parse goes on with the head. On a plaintext port the first one may turn out to be HTTP/2 (RFC 9113
// section 3.3). Later ones must not: a proxy in front may put the requests of many on one connection.
func (c *connH1) parse() (done bool, err error) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	if b := c.in.Peek(); !c.secure && !c.begun && len(b) > 0 && b[0] == 'P' {
		n := min(len(b), len(preface))
		switch same := string(b[:n]) == preface[:n]; {
		case same && n == len(preface):
			return false, errPreface
		case same:
			return false, nil
		}
	}
	return c.in.Request(c.req)
}

// refuseHead answers a head that is wrong or late. One that just ends gets nothing.
func (c *connH1) refuseHead(err error) {
	var syntax *h1.Error
	o := exchange.HeadTimeout
	switch {
	case errors.As(err, &syntax):
		o = exchange.Malformed(syntax.Status)
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return
	}
	c.srv.shared.Unrouted.Answered(o.Status)
	c.req.Reset()
	c.body.Reset(&c.in, h1.None, 0)
	c.out.Reset(c.ex, c.conn, lingerPause)
	c.Reply(o, 0)
	c.srv.linger(c.ex, &c.in, c.conn, lingerTime)
}

// AppendHead is for one time only: the buffer that the head was read into is given back.
func (c *connH1) AppendHead(dst []byte, e *exchange.Exchange) []byte {
	dst = c.sender.appendHead(dst, e)
	c.in.Trim()
	return dst
}

// Stow keeps the head: it is no larger than what has come of it.
func (c *connH1) Stow(*exchange.Exchange) {}
