package ferryman

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

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
	return c.waste()
}

func (c *clientH2) reset(id uint32, code http2.ErrCode) {
	c.say(http2.FrameRSTStream, 0, id, uint32(code))
	c.cuts[c.nextCut%len(c.cuts)] = id
	c.nextCut++
}

// cut reports a stream that ferryman has reset lately: what the client sent before it knew is ignored.
func (c *clientH2) cut(id uint32) bool { return id <= c.last && slices.Contains(c.cuts[:], id) }

const (
	maxWaste    = 1000 // streams that a client may throw away at once
	forgiveness = 100  // and for each second that passes
)

// waste counts a stream that was work for nothing. A client that opens streams only to reset them is
// sent away (CVE-2023-44487).
func (c *clientH2) waste() error {
	now := c.ex.Now()
	if d := now.Sub(c.forgiven); d >= time.Second {
		c.forgiven = now
		c.wasted = max(0, c.wasted-int(min(d/time.Second, maxWaste)*forgiveness))
	}
	if c.wasted++; c.wasted > maxWaste {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}
