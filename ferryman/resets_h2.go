package ferryman

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

const (
	// maxResets is for how many streams that ferryman ended late frames are known as such: several times as
	// many as can be under way to a client that has not heard of the end of the first.
	maxResets = 1024
	// earlyPause is how long an upload that was answered early may go on. Clients lose an answer that a reset
	// follows at once.
	earlyPause = 20 * time.Millisecond
)

// resetsH2 are the streams that ferryman has ended although the client had not. What the client sent for
// them before it knew is ignored (RFC 9113 section 5.1). The connection's lock guards it.
type resetsH2 struct {
	resets    []uint32 // the last ones, 0 where the client has ended its side
	nextReset int
	abuseH2
}

// reject resets the stream that an http2.StreamError is about. Other errors end the connection.
func (c *clientH2) reject(err error) error {
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

func (c *clientH2) reset(id uint32, code http2.ErrCode) {
	c.say(http2.FrameRSTStream, 0, id, uint32(code))
	c.ignore(id)
}

func (c *clientH2) ignore(id uint32) {
	if c.isReset(id) {
		return
	}
	if len(c.resets) < maxResets {
		c.resets = append(c.resets, id)
		return
	}
	c.resets[c.nextReset%maxResets] = id
	c.nextReset++
}

// isReset reports a stream that ferryman has ended lately and the client not yet.
func (c *clientH2) isReset(id uint32) bool { return id <= c.last && slices.Contains(c.resets, id) }

// endedByClient notes that the client has ended its side of such a stream.
func (c *clientH2) endedByClient(h headH2) {
	if i := slices.Index(c.resets, h.id); i >= 0 && h.ended {
		c.resets[i] = 0
	}
}

// endEarly resets a stream whose response is over and whose request is not (RFC 9113 section 8.1), unless
// that comes to its end within a moment.
func (c *clientH2) endEarly(id uint32) {
	c.ignore(id)
	time.AfterFunc(earlyPause, func() {
		c.post(func() {
			if c.isReset(id) {
				c.reset(id, http2.ErrCodeNo)
				c.kick()
			}
		})
	})
}
