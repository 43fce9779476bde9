package frontend

import (
	"errors"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/h2"
)

// framer waits for something of a frame, and returns what parses it.
func (c *connH2) framer() (*h2.Framer, error) {
	if c.in.Buffered() == 0 {
		if c.frames != nil && !c.blocks.Gathering() {
			h2.ReturnFramer(c.frames)
			c.frames = nil
		}
		if _, err := c.await(nil); err != nil {
			return nil, err
		}
	}
	if c.frames == nil {
		c.frames = h2.BorrowFramer(c)
	}
	return c.frames, nil
}

// frame reads one frame and does what it asks. An error ends the connection.
func (c *connH2) frame(first bool) error {
	frames, err := c.framer()
	if err != nil {
		return err
	}
	head, err := frames.ReadFrameHeader()
	switch {
	case err != nil:
		return err
	case first && head.Type != http2.FrameSettings:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.payload = head.Type == http2.FrameData
	f, err := frames.ReadFrameForHeader(head)
	c.mu.Lock()
	defer c.mu.Unlock()
	var bad http2.StreamError
	if err == nil {
		err = c.take(f)
	} else if head.Type == http2.FrameHeaders && errors.As(err, &bad) { // without its fields the tables are out of step
		return http2.ConnectionError(bad.Code)
	}
	if err = c.reject(err); err != nil {
		return err
	}
	return c.checkAbuse()
}

// take does what a frame asks. An http2.StreamError ends the stream only.
func (c *connH2) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.HeadersFrame:
		c.opening = headH2{f.StreamID, f.StreamEnded(), f.HasPriority() && f.Priority.StreamDep == f.StreamID}
		return c.takeFragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return c.takeFragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		return c.takeData(f)
	case *http2.RSTStreamFrame:
		return c.takeReset(f)
	case *http2.SettingsFrame:
		return c.takeSettings(f)
	case *http2.WindowUpdateFrame:
		if c.updates++; f.Increment < ordinaryUpdate || c.updates%updatesPerWaste == 0 {
			c.waste(1)
		}
		return c.takeWindow(f)
	case *http2.PingFrame:
		c.waste(1)
		switch {
		case !f.IsAck():
			c.ping(http2.FlagPingAck, f.Data)
		case f.Data == goAwayPing && c.leaving:
			c.finalGoAway()
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case *http2.GoAwayFrame:
		c.waste(1)
		c.finalGoAway()
	case *http2.PriorityFrame:
		c.waste(1)
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	default:
		c.waste(1)
	}
	return nil
}

func (c *connH2) takeData(f *http2.DataFrame) error {
	n := int64(f.Length)
	if c.received.left -= n; c.received.left < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if len(f.Data()) > 0 {
		c.worked(1)
	} else if !f.StreamEnded() {
		c.waste(1)
	}
	s := c.streams[f.StreamID]
	if s == nil || s.ended || s.lost {
		c.refund(n)
		switch {
		case c.beyond(f.StreamID):
			return http2.ConnectionError(http2.ErrCodeProtocol)
		case c.recentlyReset(f.StreamID), f.StreamID > c.last:
			c.endedByClient(headH2{id: f.StreamID, ended: f.StreamEnded()})
			return nil
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.received.left -= n; s.received.left < 0 {
		c.refund(n)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	s.used(int(n) - len(f.Data())) // padding
	return s.receive(f.Data(), f.StreamEnded())
}

// beyond reports a stream that is idle: nothing but HEADERS and PRIORITY may come for it.
func (c *connH2) beyond(id uint32) bool {
	return id%2 == 0 || id > c.last && !c.finalSent
}

func (c *connH2) takeSettings(f *http2.SettingsFrame) error {
	c.waste(costOfSettings)
	switch {
	case f.IsAck():
		c.heardSettings()
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
	if c.initial != before {
		for _, s := range c.streams {
			if s.window += c.initial - before; s.window > maxWindow {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
			s.wake.wakeAll()
		}
	}
	c.writeControl(http2.FrameSettings, http2.FlagSettingsAck, 0)
	return nil
}

func (c *connH2) takeWindow(f *http2.WindowUpdateFrame) error {
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

func (c *connH2) takeReset(f *http2.RSTStreamFrame) error {
	s := c.streams[f.StreamID]
	switch {
	case s == nil && c.beyond(f.StreamID):
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case s == nil:
		c.waste(1)
		c.endedByClient(headH2{id: f.StreamID, ended: true})
		return nil
	}
	if c.ex.Now().Sub(s.opened) < hasty {
		c.waste(1)
	} else {
		c.worked(answersPerStream)
	}
	s.cancel()
	return nil
}
