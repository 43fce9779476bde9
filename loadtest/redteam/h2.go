package redteam

import (
	"bufio"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2conn is an attacker's HTTP/2 connection. What it sends is bytes that the attack has made; a reader notes what
// comes, answers SETTINGS and PING, and gives windows back unless it is to keep them.
type h2conn struct {
	*conn
	frames  *http2.Framer
	keeps   bool // windows
	windows *windows

	wm sync.Mutex // held while writing

	mu      sync.Mutex // guards what follows
	changed chan struct{}
	streams map[uint32]*h2stream
	goaway  *http2.ErrCode
	ended   error // why reading has ended; nil: it has not
	replies []byte
	acks    int // of SETTINGS and PING
}

// h2stream is what came for a stream.
type h2stream struct {
	status string
	nonce  string
	body   int
	ended  bool
	reset  *http2.ErrCode
}

func (s *h2stream) done() bool { return s.ended || s.reset != nil }

// h2options are what a client says at the start.
type h2options struct {
	settings   []byte
	keeps      bool
	readBuffer int
}

func (r *rig) dialH2(o h2options) (*h2conn, error) {
	c, err := r.dial("h2", o.readBuffer)
	if err != nil {
		return nil, err
	}
	h := newH2(c)
	h.keeps = o.keeps
	go h.read()
	go h.reply()
	return h, h.send(frame([]byte(http2.ClientPreface), http2.FrameSettings, 0, 0, o.settings))
}

func newH2(c *conn) *h2conn {
	h := &h2conn{conn: c, changed: make(chan struct{}), streams: make(map[uint32]*h2stream), windows: newWindows()}
	h.frames = http2.NewFramer(nil, bufio.NewReaderSize(c, 16<<10))
	h.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return h
}

// send writes frames.
func (h *h2conn) send(b []byte) error {
	h.wm.Lock()
	defer h.wm.Unlock()
	_, err := h.Write(b)
	return err
}

// change does something to what is known, and tells those who wait.
func (h *h2conn) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *h2conn) stream(id uint32) *h2stream {
	s := h.streams[id]
	if s == nil {
		s = &h2stream{}
		h.streams[id] = s
	}
	return s
}

// await waits until cond holds of what is known, or until the connection has ended.
func (h *h2conn) await(limit time.Duration, cond func() bool) bool {
	late := time.After(limit)
	for {
		h.mu.Lock()
		ok, ended, changed := cond(), h.ended != nil, h.changed
		h.mu.Unlock()
		if ok || ended {
			return ok
		}
		select {
		case <-changed:
		case <-late:
			return false
		case <-h.r.ctx.Done():
			return false
		}
	}
}

// awaitStream waits for a stream's end, and returns what came. nil: nothing in time.
func (h *h2conn) awaitStream(id uint32, limit time.Duration) *h2stream {
	var got *h2stream
	h.await(limit, func() bool {
		if s := h.streams[id]; s != nil && s.done() {
			kept := *s
			got = &kept
		}
		return got != nil
	})
	return got
}

// gone reports whether ferryman has ended the connection.
func (h *h2conn) gone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended != nil || h.goaway != nil
}

func (h *h2conn) read() {
	for {
		f, err := h.frames.ReadFrame()
		var bad http2.StreamError
		if err != nil && !errors.As(err, &bad) {
			h.change(func() { h.ended = err })
			return
		}
		if err == nil {
			h.windows.heard(f)
			h.change(func() { h.note(f) })
		}
	}
}

// note remembers what a frame says.
func (h *h2conn) note(f http2.Frame) {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		s := h.stream(f.StreamID)
		if status := f.PseudoValue("status"); status != "" {
			s.status = status
		}
		for _, field := range f.RegularFields() {
			if field.Name == "x-nonce" {
				s.nonce = field.Value
			}
		}
		s.ended = f.StreamEnded()
	case *http2.DataFrame:
		s := h.stream(f.StreamID)
		s.body += len(f.Data())
		s.ended = f.StreamEnded()
		if n := f.Length; n > 0 && !h.keeps {
			h.replies = frame(h.replies, http2.FrameWindowUpdate, 0, 0, word(n))
			if !s.ended {
				h.replies = frame(h.replies, http2.FrameWindowUpdate, 0, f.StreamID, word(n))
			}
		}
	case *http2.RSTStreamFrame:
		h.stream(f.StreamID).reset = &f.ErrCode
	case *http2.GoAwayFrame:
		h.goaway = &f.ErrCode
	case *http2.SettingsFrame:
		if f.IsAck() {
			h.acks++
			return
		}
		h.replies = frame(h.replies, http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	case *http2.PingFrame:
		if f.IsAck() {
			h.acks++
			return
		}
		h.replies = frame(h.replies, http2.FramePing, http2.FlagPingAck, 0, f.Data[:])
	}
}

// reply sends what the reader has to say, so that the reader never waits for a writer.
func (h *h2conn) reply() {
	for {
		h.mu.Lock()
		b, ended, changed := h.replies, h.ended != nil, h.changed
		h.replies = nil
		h.mu.Unlock()
		switch {
		case ended:
			return
		case b != nil:
			if h.send(b) != nil {
				return
			}
		default:
			<-changed
		}
	}
}

// alive asks something on the connection, and returns why it is not fit for use any more.
func (h *h2conn) alive(id uint32) error {
	if err := h.send(headers(nil, id, endStream, request("GET", "/ok/alive", "x-nonce", "alive"))); err != nil {
		return h.why("a write: %w", err)
	}
	s := h.awaitStream(id, 5*time.Second)
	switch {
	case s == nil:
		return h.why("no answer")
	case s.status != "200" || s.nonce != "alive":
		return h.why("status %q, nonce %q", s.status, s.nonce)
	}
	h.r.checks(1)
	return nil
}

// why is an error with what ferryman said at the end.
func (h *h2conn) why(format string, args ...any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := fmt.Errorf(format, args...)
	if h.goaway != nil {
		err = fmt.Errorf("%w; GOAWAY %v", err, *h.goaway)
	}
	if h.ended != nil {
		err = fmt.Errorf("%w; connection: %w", err, h.ended)
	}
	return err
}
