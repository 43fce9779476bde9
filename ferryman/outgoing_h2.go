package ferryman

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/h2"
)

const (
	http2InitialWindow = 65535
	maxWindow          = 1<<31 - 1
	maxWaiting         = 15 << 10 // bytes that may wait before a response waits, too
	maxUnheard         = 64 << 10 // bytes that may wait before a client that does not read is cut off
)

// outgoing is what waits to be sent on a connection. All of it is guarded by the connection's lock.
type outgoing struct {
	pending []byte  // whole frames; borrowed from outlets while there are any
	urgent  bool    // nobody but the reader knows of some of them
	writing bool    // somebody is sending; who comes meanwhile only appends
	due     bool    // somebody will be sending, when others have appended what they have
	send    func()  // flush, made once
	broken  error   // sending is over
	greeted bool    // the preface was said
	primed  bool    // a header block was sent
	window  int64   // what the client takes of all streams together
	initial int64   // what it takes of a new stream
	room    waiters // there may be room in pending for one who waits
	credit  waiters // window may be left for one who waits
}

func (c *clientH2) buffer() []byte {
	if c.pending == nil {
		return outlets.Get().(*[outletSize]byte)[:0]
	}
	return c.pending
}

// say appends a small frame. A client that causes many and reads none is cut off.
func (c *clientH2) say(t http2.FrameType, flags http2.Flags, id uint32, words ...uint32) {
	if c.broken != nil {
		return
	}
	if len(c.pending) > maxUnheard {
		c.cutOff(errUnheard)
		return
	}
	c.pending = h2.AppendFrameHead(c.buffer(), 4*len(words), t, flags, id)
	for _, w := range words {
		c.pending = binary.BigEndian.AppendUint32(c.pending, w)
	}
	c.urgent = true
}

func (c *clientH2) ping(flags http2.Flags, data [8]byte) {
	c.say(http2.FramePing, flags, 0, binary.BigEndian.Uint32(data[:4]), binary.BigEndian.Uint32(data[4:]))
}

// greet sends the server's preface (RFC 9113 section 3.4).
func (c *clientH2) greet() {
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
	c.say(http2.FrameWindowUpdate, 0, 0, connWindow-http2InitialWindow)
	if c.greeted = true; c.p.clients.draining.Load() {
		c.drain()
	}
	_ = c.flushLocked()
}

// flush sends what waits.
func (c *clientH2) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = false
	_ = c.flushLocked()
	c.settle()
}

// maxRounds is how often one coroutine sends for the others before one of its own is found for it.
const maxRounds = 4

// flushLocked sends what waits, unless somebody is at it already, who will take it along.
func (c *clientH2) flushLocked() error {
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
		o := outlet{ex: c.ex, conn: c.conn, stall: c.p.snapshot.Load().config.BodyIdleTimeout}
		err := o.write(b)
		if cap(b) == outletSize {
			outlets.Put((*[outletSize]byte)(b[:outletSize]))
		}
		c.mu.Lock()
		c.writing = false
		if err != nil {
			c.cutOff(err)
		}
		c.room.wakeOne()
	}
	return c.broken
}

// kick has somebody else send what was said. It needs the lock.
func (c *clientH2) kick() {
	if c.urgent && !c.writing && !c.due && c.broken == nil {
		c.due = true
		c.ex.Go(c.send)
	}
}

// cutOff ends a connection whose client takes no more, with a reset: nothing else frees what the kernel
// holds for it. It needs the lock.
func (c *clientH2) cutOff(err error) {
	c.breakOff(err)
	c.raw.Reset()
}

// breakOff ends sending. It needs the lock.
func (c *clientH2) breakOff(err error) {
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

// claim waits until the stream may send, and returns how much of n bytes of payload. n is 0 for a
// head, which needs no window. One who waited wakes the next, for there may be more to be had.
func (s *streamH2) claim(n int) (int, error) {
	c := s.c
	defer c.room.wakeOne()
	defer c.credit.wakeOne()
	for before := (*waiters)(nil); ; {
		var waits *waiters
		switch {
		case c.broken != nil:
			return 0, c.broken
		case s.lost:
			return 0, errClientGone
		case n > 0 && s.window <= 0:
			waits = &s.wake
		case n > 0 && c.window <= 0:
			waits = &c.credit
		case len(c.pending) > maxWaiting:
			waits = &c.room
		case n == 0:
			return 0, nil
		default:
			return int(min(int64(n), s.window, c.window, maxFrame)), nil
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
	if _, err := s.claim(0); err != nil {
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
		n := min(len(block), maxFrame)
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
		n, err := s.claim(len(b))
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
