package frontend

import (
	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h2"
)

// streamOf finds the stream that HEADERS belong to, nil for one that they open. New streams count
// upwards, others are closed (RFC 9113 section 5.1.1); the final GOAWAY and resets under way have some
// ignored.
func (c *connH2) streamOf(id uint32) (s *streamH2, ignored bool, err error) {
	s = c.streams[id]
	switch {
	case s != nil && !s.lost:
		return s, false, nil
	case c.recentlyReset(id), id > c.last && c.finalSent:
		return nil, true, nil
	case id%2 == 0, id <= c.last && c.gap:
		return nil, false, http2.ConnectionError(http2.ErrCodeProtocol)
	case id <= c.last:
		return nil, false, http2.ConnectionError(http2.ErrCodeStreamClosed)
	}
	c.gap = c.gap || id > c.last+2
	c.last = id
	return nil, false, nil
}

// headH2 is what a HEADERS frame says beside its fields.
type headH2 struct {
	id    uint32
	ended bool
	loop  bool // the stream depends on itself
}

// takeFragment takes a part of a header block, and what the block is about once it is whole.
func (c *connH2) takeFragment(fragment []byte, ended bool) error {
	block, err := c.blocks.Gather(fragment, ended)
	if err != nil || !ended {
		return err
	}
	s, ignored, err := c.streamOf(c.opening.id)
	if err != nil {
		return err
	}
	if !ignored && s == nil {
		return c.takeHead(c.opening, block)
	}
	var trailers h2.Fields
	if err := c.blocks.Decode(block, &trailers); err != nil {
		return err
	}
	if ignored {
		if c.opening.id > c.last {
			c.waste(1)
		}
		c.endedByClient(c.opening)
		return nil
	}
	return s.takeTrailers(c.opening, &trailers)
}

// takeHead opens a stream.
func (c *connH2) takeHead(h headH2, block []byte) error {
	s := borrowStream(c, h)
	if err := c.blocks.Decode(block, &s.fields); err != nil {
		return err
	}
	s.declared, s.e.Request = declaredLength(&s.fields), exchange.Request{Head: s.fields.ToHead}
	code := http2.ErrCodeNo
	switch {
	case h.loop, s.ended && s.declared > 0:
		code = http2.ErrCodeProtocol
	case c.open >= maxStreams:
		code = http2.ErrCodeRefusedStream
	}
	if code != http2.ErrCodeNo {
		s.release()
		return http2.StreamError{StreamID: h.id, Code: code}
	}
	c.streams[h.id] = s
	c.open++
	c.entry.state.Store(connActive)
	c.fresh = append(c.fresh, s)
	return nil
}

// takeTrailers ends a stream with its trailers, which go no further.
func (s *streamH2) takeTrailers(h headH2, trailers *h2.Fields) error {
	switch {
	case s.ended:
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeStreamClosed}
	case !h.ended, h.loop, trailers.TooLarge, !trailers.Valid():
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	return s.receive(nil, true)
}
