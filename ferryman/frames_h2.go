package ferryman

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

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
	unread := err != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if !unread {
		err = c.take(f)
	}
	var bad http2.StreamError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &bad):
		return err
	case unread && head.Type == http2.FrameHeaders:
		if bad.Cause == nil { // its fields were not decoded: the tables are out of step
			return http2.ConnectionError(bad.Code)
		}
		if _, err := c.opened(bad.StreamID); err != nil {
			return err
		}
	}
	return c.reject(bad)
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

// opened finds the stream that HEADERS belong to. Those that open one, which is nil then, must count
// upwards (RFC 9113 section 5.1.1); others are for a closed one.
func (c *clientH2) opened(id uint32) (*streamH2, error) {
	s := c.streams[id]
	switch {
	case s != nil:
		return s, nil
	case id%2 == 0 || id <= c.last && c.gap:
		return nil, http2.ConnectionError(http2.ErrCodeProtocol)
	case id <= c.last:
		return nil, http2.ConnectionError(http2.ErrCodeStreamClosed)
	}
	if !c.parted { // or else it was never opened
		c.gap = c.gap || id > c.last+2
		c.last = id
	}
	return nil, nil
}

// takeHeaders opens a stream, or ends one with its trailers, which go no further.
func (c *clientH2) takeHeaders(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if id <= c.last && c.cut(id) {
		return nil
	}
	s, err := c.opened(id)
	switch {
	case err != nil:
		return err
	case s == nil && c.parted:
		return nil
	case s != nil && (s.lost || s.ended):
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
	c.running.Add(1)
	c.p.goroutines.Go(s.strand)
	return nil
}

func (c *clientH2) takeData(f *http2.DataFrame) error {
	n := int64(f.Length)
	if c.received.left -= n; c.received.left < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := c.streams[f.StreamID]
	if s == nil || s.ended || s.lost {
		c.giveBack(n)
		switch {
		case c.beyond(f.StreamID):
			return http2.ConnectionError(http2.ErrCodeProtocol)
		case c.cut(f.StreamID), f.StreamID > c.last:
			return nil
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.received.left -= n; s.received.left < 0 {
		c.giveBack(n)
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
		s.wake.Broadcast()
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
		c.turn.Signal()
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
	s.wake.Broadcast()
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

// reject resets a stream for a mistake of the client.
func (c *clientH2) reject(bad http2.StreamError) error {
	if s := c.streams[bad.StreamID]; s != nil {
		s.cancel()
	}
	if !c.parted || bad.StreamID <= c.last {
		c.reset(bad.StreamID, bad.Code)
	}
	return c.waste()
}

func (c *clientH2) reset(id uint32, code http2.ErrCode) {
	c.say(http2.FrameRSTStream, 0, id, uint32(code))
	c.cuts[c.nextCut%len(c.cuts)] = id
	c.nextCut++
}

// cut reports a stream that ferryman has reset lately: what the client sent before it knew is ignored.
func (c *clientH2) cut(id uint32) bool { return slices.Contains(c.cuts[:], id) }

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

func (c *clientH2) ping(flags http2.Flags, data [8]byte) {
	c.say(http2.FramePing, flags, 0, binary.BigEndian.Uint32(data[:4]), binary.BigEndian.Uint32(data[4:]))
}

// giveBack returns window to the client, for all streams together, once it is worth a frame.
func (c *clientH2) giveBack(n int64) {
	f := &c.received
	if f.owed += n; f.owed >= connWindow/4 {
		c.say(http2.FrameWindowUpdate, 0, 0, uint32(f.owed))
		f.left, f.owed = f.left+f.owed, 0
	}
}
