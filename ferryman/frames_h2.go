package ferryman

import (
	"errors"

	"golang.org/x/net/http2"
)

// frame reads one frame and does what it asks. An error ends the connection.
func (c *clientH2) frame(first bool) error {
	head, err := c.frames.ReadFrameHeader()
	switch {
	case err != nil:
		return err
	case first && head.Type != http2.FrameSettings:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.payload = head.Type == http2.FrameData
	f, err := c.frames.ReadFrameForHeader(head)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return c.refuse(head, err)
	}
	if err := c.take(f); err != nil {
		return c.reject(err)
	}
	return nil
}

// refuse deals with a frame that is malformed.
func (c *clientH2) refuse(head http2.FrameHeader, err error) error {
	var bad http2.StreamError
	if head.Type == http2.FrameHeaders && errors.As(err, &bad) {
		if bad.Cause == nil { // its fields were not decoded: the tables are out of step
			return http2.ConnectionError(bad.Code)
		}
		if _, ignored, err := c.opened(bad.StreamID); ignored || err != nil {
			return err
		}
	}
	return c.reject(err)
}

// take does what a frame asks. An http2.StreamError ends the stream only.
func (c *clientH2) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.takeHeaders(f)
	case *http2.DataFrame:
		return c.takeData(f)
	case *http2.SettingsFrame:
		return c.takeSettings(f)
	case *http2.WindowUpdateFrame:
		return c.takeWindow(f)
	case *http2.RSTStreamFrame:
		return c.takeReset(f)
	case *http2.PingFrame:
		switch {
		case !f.IsAck():
			c.ping(http2.FlagPingAck, f.Data)
		case f.Data == parting && c.leaving:
			c.part()
		}
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case *http2.GoAwayFrame:
		c.part()
	}
	return nil
}

// opened finds the stream that HEADERS belong to, nil for one that they open. New streams count
// upwards, others are closed (RFC 9113 section 5.1.1); the last goodbye and resets under way have some
// ignored.
func (c *clientH2) opened(id uint32) (s *streamH2, ignored bool, err error) {
	s = c.streams[id]
	switch {
	case s != nil && !s.lost:
		return s, false, nil
	case c.cut(id), id > c.last && c.parted:
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

// takeHeaders opens a stream, or ends one with its trailers, which go no further.
func (c *clientH2) takeHeaders(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	s, ignored, err := c.opened(id)
	switch {
	case err != nil || ignored:
		return err
	case s != nil && s.ended:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	case s != nil && (!f.StreamEnded() || len(f.PseudoFields()) > 0),
		f.HasPriority() && f.Priority.StreamDep == id:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	case s != nil:
		return s.come(nil, true)
	case c.open >= maxStreams:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	s = borrowStream(c, f)
	if s.ended && s.declared > 0 {
		streamsH2.Put(s)
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	c.streams[id] = s
	c.open++
	c.entry.state.Store(clientActive)
	if c.to != nil {
		c.held = append(c.held, s)
	} else {
		c.start(s)
	}
	return nil
}

// start has a stream served. It needs the lock.
func (c *clientH2) start(s *streamH2) {
	c.running++
	c.ex.Go(s.strand)
}

func (c *clientH2) takeData(f *http2.DataFrame) error {
	n := int64(f.Length)
	if c.received.left -= n; c.received.left < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := c.streams[f.StreamID]
	if s == nil || s.ended || s.lost {
		c.refund(n)
		switch {
		case c.beyond(f.StreamID):
			return http2.ConnectionError(http2.ErrCodeProtocol)
		case c.cut(f.StreamID), f.StreamID > c.last:
			return nil
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.received.left -= n; s.received.left < 0 {
		c.refund(n)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	s.used(int(n) - len(f.Data())) // padding
	return s.come(f.Data(), f.StreamEnded())
}

// beyond reports a stream that is idle: nothing but HEADERS and PRIORITY may come for it.
func (c *clientH2) beyond(id uint32) bool {
	return id%2 == 0 || id > c.last && !c.parted
}

func (c *clientH2) takeSettings(f *http2.SettingsFrame) error {
	switch {
	case f.IsAck():
		return nil
	case f.NumSettings() > 100:
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	before := c.initial
	err := f.ForeachSetting(func(s http2.Setting) error {
		if s.ID == http2.SettingInitialWindowSize {
			c.initial = int64(s.Val)
		}
		return s.Valid()
	})
	if err != nil {
		return err
	}
	for _, s := range c.streams {
		if s.window += c.initial - before; s.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		s.wake.wakeAll()
	}
	c.say(http2.FrameSettings, http2.FlagSettingsAck, 0)
	return nil
}

func (c *clientH2) takeWindow(f *http2.WindowUpdateFrame) error {
	n := int64(f.Increment)
	if f.StreamID == 0 {
		if c.window += n; c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.credit.wakeOne()
		return nil
	}
	s := c.streams[f.StreamID]
	switch {
	case s == nil && c.beyond(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return nil
	}
	if s.window += n; s.window > maxWindow {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	s.wake.wakeAll()
	return nil
}

func (c *clientH2) takeReset(f *http2.RSTStreamFrame) error {
	s := c.streams[f.StreamID]
	switch {
	case s == nil && c.beyond(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		return nil
	}
	s.cancel()
	return c.waste()
}
