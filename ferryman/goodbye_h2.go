package ferryman

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/net/http2"
)

const (
	partingPause = 300 * time.Millisecond // how long the first goodbye waits for its echo
	partingTime  = 500 * time.Millisecond // how long the client may take to close after the last
)

// parting is what the PING between the two goodbyes carries.
var parting = [8]byte{'f', 'e', 'r', 'r', 'y', 'm', 'a', 'n'}

// drainSoon is drain for any goroutine.
func (c *clientH2) drainSoon() { c.post(c.drain) }

// drain says goodbye in two steps (RFC 9113 section 6.8): what the client sends before it has heard
// the first one is still served. The answer to a PING tells when it has, a timer where none comes.
// It needs the lock. Nothing goes before the server's preface, which has a look itself.
func (c *clientH2) drain() {
	if c.leaving || !c.greeted {
		return
	}
	c.leaving = true
	c.stay()
	c.say(http2.FrameGoAway, 0, 0, 1<<31-1, uint32(http2.ErrCodeNo))
	c.ping(0, parting)
	c.kick()
	time.AfterFunc(partingPause, func() {
		c.post(func() {
			c.part()
			c.kick()
		})
	})
}

// part says the last goodbye. It needs the lock.
func (c *clientH2) part() {
	if c.parted {
		return
	}
	c.leaving, c.parted = true, true
	c.say(http2.FrameGoAway, 0, 0, c.last, uint32(http2.ErrCodeNo))
	if len(c.streams) == 0 {
		c.hangUp()
	}
}

// hangUp makes the reader end. It needs the lock.
func (c *clientH2) hangUp() {
	c.over = true
	c.conn.SetReadDeadline(time.Unix(1, 0))
}

// leave ends the connection: what is under way is dropped, and the client hears why.
func (c *clientH2) leave(err error) {
	code, heard := reasonFor(err)
	c.mu.Lock()
	for _, s := range c.streams {
		s.cancel()
	}
	c.dropFresh()
	if heard && !(c.parted && code == http2.ErrCodeNo) {
		c.say(http2.FrameGoAway, 0, 0, c.last, uint32(code))
	}
	c.conn.SetWriteDeadline(c.ex.Now().Add(partingTime))
	_ = c.flushLocked()
	for c.writing {
		c.room.wait(c.ex, &c.mu)
	}
	c.breakOff(net.ErrClosed)
	c.mu.Unlock()
	if heard {
		c.p.linger(c.ex, &c.in, c.conn, partingTime)
	}
	c.in.Release()
	c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 {
		c.alone.wait(c.ex, &c.mu)
	}
}

// reasonFor turns the end of the reader into the code of a GOAWAY. heard: there is somebody left.
func reasonFor(err error) (code http2.ErrCode, heard bool) {
	var broken http2.ConnectionError
	switch {
	case errors.As(err, &broken):
		return http2.ErrCode(broken), true
	case errors.Is(err, http2.ErrFrameTooLarge), errors.Is(err, io.ErrUnexpectedEOF):
		return http2.ErrCodeFrameSize, true
	}
	return http2.ErrCodeNo, errors.Is(err, os.ErrDeadlineExceeded)
}
