package frontend

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/h2"
)

const (
	defaultWindow = 65535
	maxWindow     = 1<<31 - 1
	maxWaiting    = 15 << 10 // bytes that may wait before a response waits, too
	maxUnheard    = 64 << 10 // bytes that may wait before a client that does not read is cut off
)

// outgoing is what waits to be sent on a connection. All of it is guarded by the connection's lock.
type outgoing struct {
	pending []byte    // whole frames; a borrowed buffer while there are any
	urgent  bool      // nobody but the reader knows of some of them
	writing bool      // a coroutine is sending; others only append meanwhile
	due     bool      // somebody will be sending, when others have appended what they have
	send    func()    // flush, made once
	broken  error     // sending is over
	greeted bool      // the preface was sent
	primed  bool      // a header block was sent
	window  int64     // what the client takes of all streams together
	initial int64     // what it takes of a new stream
	room    condQueue // coroutines that wait for space in pending
	credit  condQueue // and those that wait for window
}

func (c *connH2) buffer() []byte {
	if c.pending == nil {
		return h1.BorrowBuffer()[:0]
	}
	return c.pending
}

// writeControl appends a small frame. A client that causes many and reads none is cut off.
func (c *connH2) writeControl(t http2.FrameType, flags http2.Flags, id uint32, words ...uint32) {
	if c.broken != nil {
		return
	}
	if len(c.pending) > maxUnheard {
		c.abort(errUnheard)
		return
	}
	c.pending = h2.AppendFrameHead(c.buffer(), 4*len(words), t, flags, id)
	for _, w := range words {
		c.pending = binary.BigEndian.AppendUint32(c.pending, w)
	}
	c.urgent = true
}

func (c *connH2) ping(flags http2.Flags, data [8]byte) {
	c.writeControl(http2.FramePing, flags, 0, binary.BigEndian.Uint32(data[:4]), binary.BigEndian.Uint32(data[4:]))
}

// greet sends the server's preface (RFC 9113 section 3.4).
func (c *connH2) greet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = h2.AppendFrameHead(c.buffer(), 24, http2.FrameSettings, 0, 0)
	for _, s := range []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		{ID: http2.SettingInitialWindowSize, Val: firstWindow},
		{ID: http2.SettingMaxHeaderListSize, Val: h2.MaxList},
		{ID: http2.SettingNoRFC7540Priorities, Val: 1},
	} {
		c.pending = binary.BigEndian.AppendUint16(c.pending, uint16(s.ID))
		c.pending = binary.BigEndian.AppendUint32(c.pending, s.Val)
	}
	c.writeControl(http2.FrameWindowUpdate, 0, 0, connWindow-defaultWindow)
	if c.greeted = true; c.srv.Draining() {
		c.drain()
	}
	_ = c.flushLocked()
}

// flush sends what waits.
func (c *connH2) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = false
	_ = c.flushLocked()
	c.checkForMove()
}

// maxRounds is how often one coroutine sends for the others before one of its own is found for it.
const maxRounds = 4

// flushLocked sends what waits, unless another coroutine is sending already, which will send this as well.
func (c *connH2) flushLocked() error {
	for round := 0; len(c.pending) > 0 && !c.writing && c.broken == nil; round++ {
		if round == maxRounds {
			if !c.due {
				c.due = true
				c.ex.Go(c.send)
			}
			break
		}
		b := c.pending
		c.pending, c.urgent, c.writing = nil, false, true
		c.mu.Unlock()
		var out h1.Writer
		out.Reset(c.ex, c.conn, c.srv.shared.Snapshot.Load().BodyIdleTimeout)
		err := out.Send(b)
		if cap(b) == h1.BufferSize {
			h1.ReturnBuffer((*[h1.BufferSize]byte)(b[:h1.BufferSize]))
		}
		c.mu.Lock()
		c.writing = false
		if err != nil {
			c.abort(err)
		}
		c.room.wakeOne()
	}
	return c.broken
}

// scheduleFlush has another coroutine send the control frames. It needs the lock.
func (c *connH2) scheduleFlush() {
	if c.urgent && !c.writing && !c.due && c.broken == nil {
		c.due = true
		c.ex.Go(c.send)
	}
}

// reserveWindow waits until the stream may send, and returns how much of n bytes of payload. n is 0 for a
// head, which needs no window. A coroutine that has waited wakes the next one, because there may be more.
func (s *streamH2) reserveWindow(n int) (int, error) {
	c := s.c
	defer c.room.wakeOne()
	defer c.credit.wakeOne()
	for before := (*condQueue)(nil); ; {
		var waits *condQueue
		switch {
		case c.broken != nil:
			return 0, c.broken
		case s.lost:
			return 0, exchange.ErrClientGone
		case n > 0 && s.window <= 0:
			waits = &s.wake
		case n > 0 && c.window <= 0:
			waits = &c.credit
		case len(c.pending) > maxWaiting:
			waits = &c.room
		case n == 0:
			return 0, nil
		default:
			return int(min(int64(n), s.window, c.window, h2.MaxFrame)), nil
		}
		if before != nil && before != waits {
			before.wakeOne()
		}
		before = waits
		err := error(nil)
		if len(c.pending) > 0 && !c.writing {
			err = c.flushLocked() // which lets go of the lock: look again
		} else {
			err = s.wait(waits)
		}
		if err != nil {
			return 0, err
		}
	}
}

// appendHeaders appends a header block as HEADERS and CONTINUATION frames. Nothing may come between
// them. block begins with a byte to spare.
func (s *streamH2) appendHeaders(block []byte, last bool) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := s.reserveWindow(0); err != nil {
		return err
	}
	// The encoder has no dynamic table, and says so before its first use of one: no later change of
	// the limit concerns it (RFC 7541 section 4.2).
	block[0] = h2.NoDynamicTable
	if c.primed {
		block = block[1:]
	}
	c.primed = true
	t, flags := http2.FrameHeaders, http2.Flags(0)
	if last {
		flags = http2.FlagHeadersEndStream
		s.endSent()
	}
	for more := true; more; t, flags = http2.FrameContinuation, 0 {
		n := min(len(block), h2.MaxFrame)
		if more = n < len(block); !more {
			flags |= http2.FlagHeadersEndHeaders
		}
		c.pending = append(h2.AppendFrameHead(c.buffer(), n, t, flags, s.id), block[:n]...)
		block = block[n:]
	}
	return nil
}

// appendData sends payload as DATA frames as the windows allow. The last of a stream is sent when the
// stream is through with everything: then the upstream's connection is free for the client's next.
func (s *streamH2) appendData(b []byte, last bool) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for first := true; first || len(b) > 0; first = false {
		n, err := s.reserveWindow(len(b))
		if err != nil {
			return err
		}
		flags := http2.Flags(0)
		if last && n == len(b) {
			flags = http2.FlagDataEndStream
			s.endSent()
		}
		c.pending = append(h2.AppendFrameHead(c.buffer(), n, http2.FrameData, flags, s.id), b[:n]...)
		c.worked(answersPerData)
		s.window -= int64(n)
		c.window -= int64(n)
		b = b[n:]
	}
	if last {
		return c.broken
	}
	return c.flushLocked()
}
