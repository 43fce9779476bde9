package frontend

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/net/http2"
)

const (
	goAwayPause = 300 * time.Millisecond // how long the first GOAWAY waits for the acknowledgement of its PING
	closePause  = 500 * time.Millisecond // how long the client may take to close after the final one
)

// goAwayPing is what the PING between the two GOAWAYs carries.
var goAwayPing = [8]byte{'f', 'e', 'r', 'r', 'y', 'm', 'a', 'n'}

// drainSoon is drain for any goroutine.
func (c *connH2) drainSoon() { c.post(c.drain) }

// drain begins a graceful shutdown in two steps (RFC 9113 section 6.8): what the client sends before it has received
// the first GOAWAY is still served. The acknowledgement of a PING shows when it has; a timer stands in where none comes.
// It needs the lock. Nothing goes before the server's preface, which has a look itself.
func (c *connH2) drain() {
	if c.leaving || !c.greeted {
		return
	}
	c.leaving = true
	c.cancelMove()
	c.writeControl(http2.FrameGoAway, 0, 0, 1<<31-1, uint32(http2.ErrCodeNo))
	c.ping(0, goAwayPing)
	c.scheduleFlush()
	time.AfterFunc(goAwayPause, func() {
		c.post(func() {
			c.finalGoAway()
			c.scheduleFlush()
		})
	})
}

// finalGoAway sends the GOAWAY behind which no new stream is served. It needs the lock.
func (c *connH2) finalGoAway() {
	if c.finalSent {
		return
	}
	c.leaving, c.finalSent = true, true
	c.writeControl(http2.FrameGoAway, 0, 0, c.last, uint32(http2.ErrCodeNo))
	if len(c.streams) == 0 {
		c.endReader()
	}
}

// endReader makes the reader end. It needs the lock.
func (c *connH2) endReader() {
	c.over = true
	c.conn.SetReadDeadline(time.Unix(1, 0))
}

// close ends the connection: what is under way is dropped, and the client is told why.
func (c *connH2) close(err error) {
	code, heard := reasonFor(err)
	c.mu.Lock()
	for _, s := range c.streams {
		s.cancel()
	}
	c.dropFresh()
	if heard && !(c.finalSent && code == http2.ErrCodeNo) {
		c.writeControl(http2.FrameGoAway, 0, 0, c.last, uint32(code))
	}
	c.conn.SetWriteDeadline(c.ex.Now().Add(closePause))
	_ = c.flushLocked()
	for c.writing {
		c.room.wait(c.ex, &c.mu)
	}
	c.stopSending(net.ErrClosed)
	c.mu.Unlock()
	if heard {
		c.srv.linger(c.ex, &c.in, c.conn, closePause)
	}
	c.in.Release()
	c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 {
		c.alone.wait(c.ex, &c.mu)
	}
}

// abort ends a connection whose client takes no more, with a reset: nothing else frees what the kernel
// holds for it. It needs the lock.
func (c *connH2) abort(err error) {
	c.stopSending(err)
	c.raw.Reset()
}

// stopSending ends sending. It needs the lock.
func (c *connH2) stopSending(err error) {
	if c.broken == nil {
		c.broken = err
	}
	c.pending = nil
	c.room.wakeAll()
	c.credit.wakeAll()
	for _, s := range c.streams {
		s.wake.wakeAll()
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
