package frontend

import (
	"errors"
	"time"

	"golang.org/x/net/http2"
)

// earlyPause is how long an upload may go on whose response is complete. Clients lose a response that a reset
// follows at once.
const earlyPause = 20 * time.Millisecond

// reject resets the stream that an http2.StreamError is about. Other errors end the connection.
func (c *connH2) reject(err error) error {
	var bad http2.StreamError
	switch {
	case !errors.As(err, &bad):
		return err
	case c.beyond(bad.StreamID):
		return http2.ConnectionError(bad.Code)
	case bad.StreamID <= c.last:
		c.reset(bad.StreamID, bad.Code)
	}
	if s := c.streams[bad.StreamID]; s != nil {
		s.cancel()
	}
	c.waste(1)
	return nil
}

func (c *connH2) reset(id uint32, code http2.ErrCode) {
	c.writeControl(http2.FrameRSTStream, 0, id, uint32(code))
	c.recent.Add(id)
}

// recentlyReset reports a stream that ferryman has ended lately and the client not yet: what comes for it is ignored
// (RFC 9113 section 5.1).
func (c *connH2) recentlyReset(id uint32) bool { return id <= c.last && c.recent.Has(id) }

// endedByClient notes that the client has ended its side of such a stream.
func (c *connH2) endedByClient(h headH2) {
	if h.ended {
		c.recent.Ended(h.id)
	}
}

// endEarly resets a stream whose response is over and whose request is not (RFC 9113 section 8.1), unless
// that comes to its end within a moment.
func (c *connH2) endEarly(id uint32) {
	c.recent.Add(id)
	time.AfterFunc(earlyPause, func() {
		c.post(func() {
			if c.recentlyReset(id) {
				c.reset(id, http2.ErrCodeNo)
				c.scheduleFlush()
			}
		})
	})
}
