package redteam

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// Bodies that nobody takes.

var data16K = bytes.Repeat([]byte("body "), 16<<10/5)

// upload sends n bytes, the whole of a stream's body, as windows allow. It returns how many were sent when it was done or
// the limit was over.
func (h *h2conn) upload(id uint32, n int, limit time.Duration) int {
	sent := 0
	for end := time.Now().Add(limit); sent < n && time.Now().Before(end); {
		m, err := h.piece(id, n-sent, n-sent <= len(data16K))
		if err != nil || m == 0 && !h.r.pause(2*time.Millisecond) {
			break
		}
		sent += m
	}
	return sent
}

// piece sends up to n bytes of a stream's body, a frame at most, as windows allow; the last one ends the stream.
func (h *h2conn) piece(id uint32, n int, last bool) (sent int, err error) {
	n = min(n, len(data16K))
	m := h.windows.reserve(id, n)
	if m == 0 {
		if h.gone() {
			err = h.why("no window")
		}
		return 0, err
	}
	flags := http2.Flags(0)
	if last && m == n {
		flags = http2.FlagDataEndStream
	}
	return m, h.send(frame(nil, http2.FrameData, flags, id, data16K[:m]))
}

// windows are what ferryman is ready to take.
type windows struct {
	mu      sync.Mutex // guards all
	all     int
	initial int
	of      map[uint32]int
}

func newWindows() *windows { return &windows{all: 65535, initial: 65535, of: make(map[uint32]int)} }

// reserve takes up to n bytes of them.
func (w *windows) reserve(id uint32, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.of[id]; !known {
		w.of[id] = 0
	}
	if n = min(n, w.all, w.initial+w.of[id]); n <= 0 {
		return 0
	}
	w.all, w.of[id] = w.all-n, w.of[id]-n
	return n
}

// heard is told of frames that change them.
func (w *windows) heard(f http2.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f := f.(type) {
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			w.all += int(f.Increment)
		} else {
			w.of[f.StreamID] += int(f.Increment)
		}
	case *http2.SettingsFrame:
		if n, ok := f.Value(http2.SettingInitialWindowSize); ok {
			w.initial = int(n)
		}
	}
}

var attackStalled = Attack{
	Name:  "stalled-uploads",
	About: "six uploads of 20 MiB that nobody takes on one HTTP/2 connection, then one of 1 MiB to an upstream that is well",
	Peak:  80,
	run: func(r *rig) error {
		h, err := r.dialH2(h2options{})
		if err != nil {
			return err
		}
		var b []byte
		for id := uint32(1); id <= 11; id += 2 {
			b = headers(b, id, 0, request("POST", "/stall/"))
		}
		if err := h.send(b); err != nil {
			return err
		}
		var stalling sync.WaitGroup
		for id := uint32(1); id <= 11; id += 2 {
			stalling.Go(func() { h.upload(id, 20<<20, 5*time.Second) })
		}
		r.pause(time.Second)
		const size = 1 << 20
		if err := h.send(headers(nil, 13, 0, request("POST", "/ok/", "x-nonce", "well", "content-length", fmt.Sprint(size)))); err != nil {
			return err
		}
		sent := h.upload(13, size, 3*time.Second)
		s := h.awaitStream(13, 2*time.Second)
		if s == nil || s.status != "200" || s.nonce != "well" {
			err = h.why("no answer")
		}
		r.atLeast("bytes taken of the upload that is well", float64(sent), size, err)
		r.checks(1)
		h.reset()
		stalling.Wait()
		return nil
	},
}

var attackUnreadH2 = Attack{
	Name:  "unread-h2",
	About: "bodies that nobody takes: 24 HTTP/2 connections of 64 uploads each that send what they may, 40 MiB at most",
	Peak:  340, // 256 MiB of bodies, and what the runtime needs to manage them
	run: func(r *rig) error {
		const each, most = 64, 40 << 20
		var b []byte
		for id := uint32(1); id < 2*each; id += 2 {
			b = headers(b, id, 0, request("POST", "/stall/"))
		}
		return r.each(24, 24, func(int) error {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			if err := h.send(b); err != nil {
				return err
			}
			sent := 0
			for idle := 0; sent < most && idle < 20; idle++ { // until nothing is taken for a while
				for id := uint32(1); id < 2*each; id += 2 {
					n, err := h.piece(id, len(data16K), false)
					if err != nil {
						return nil // it is sent away, which is fine as well
					}
					if n > 0 {
						sent, idle = sent+n, 0
					}
				}
				if idle > 0 && !r.pause(20*time.Millisecond) {
					break
				}
			}
			return nil
		})
	},
}

var attackUnreadH1 = Attack{
	Name:  "unread-h1",
	Few:   true,
	About: "bodies that nobody takes: 500 HTTP/1.1 connections that send 256 KiB each, as far as it is taken",
	Peak:  80,
	run: func(r *rig) error {
		head := []byte("POST /stall/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 262144\r\n\r\n")
		err := r.each(500, 40, func(int) error {
			c, err := r.dial("http/1.1", 0)
			if err != nil {
				return err
			}
			if _, err := c.Write(head); err != nil {
				return err
			}
			for range 16 {
				_ = c.tcp.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
				n, err := c.Conn.Write(data16K)
				r.sent.Add(int64(n))
				if err != nil {
					break // it is full
				}
			}
			return nil
		})
		r.pause(500 * time.Millisecond)
		return err
	},
}
