package redteam

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// Frames that are cheap to send. Whoever sends little else must be sent away.

// flood is a kind of them. burst makes some that may follow each other for ever on a connection that has 250
// streams open, which wait for an upstream that hangs.
type flood struct {
	name  string
	frame []byte // one of them
	bound int    // that are taken at most
}

var windowSettings = append(frame(nil, http2.FrameSettings, 0, 0, setting(http2.SettingInitialWindowSize, 65535)),
	frame(nil, http2.FrameSettings, 0, 0, setting(http2.SettingInitialWindowSize, 1))...)

// largeSettings is a frame of 16 KiB.
var largeSettings = frame(nil, http2.FrameSettings, 0, 0, bytes.Repeat(setting(http2.SettingInitialWindowSize, 65535), 2700))

var floods = []flood{
	{"SETTINGS", frame(nil, http2.FrameSettings, 0, 0, nil), 20_000},
	{"SETTINGS that move 250 windows", windowSettings, 20_000},
	{"SETTINGS of 2,700 each", largeSettings, 200},
	{"PING", frame(nil, http2.FramePing, 0, 0, make([]byte, 8)), 20_000},
	{"PRIORITY", frame(nil, http2.FramePriority, 0, 1, append(word(0), 10)), 20_000},
	{"WINDOW_UPDATE", frame(nil, http2.FrameWindowUpdate, 0, 1, word(1)), 20_000},
	{"frames of an unknown type", frame(nil, 0xbe, 0, 1, nil), 20_000},
	{"RST_STREAM of a stream that has ended", resetFrame(nil, 3), 20_000},
	{"empty DATA", frame(nil, http2.FrameData, 0, 1, nil), 20_000},
	{"DATA of padding", frame(nil, http2.FrameData, http2.FlagDataPadded, 1, append([]byte{10}, make([]byte, 10)...)), 20_000},
}

var attackFloods = Attack{
	Name:  "control-frames",
	About: "floods of SETTINGS, PING and other frames that cost nothing to send, with 250 streams open: none goes on for ever",
	Time:  20 * time.Second,
	run: func(r *rig) error {
		for _, f := range floods {
			n, err := r.flood(f)
			if err != nil {
				return err
			}
			r.atMost(f.name, float64(n), float64(f.bound))
		}
		return nil
	},
}

// flood returns how many frames were taken until the client was sent away.
func (r *rig) flood(f flood) (frames int, err error) {
	h, err := r.dialH2(h2options{})
	if err != nil {
		return 0, err
	}
	defer h.reset()
	b := headers(nil, 1, 0, request("POST", "/hang/"))
	b = resetFrame(headers(b, 3, endStream, request("GET", "/hang/")), 3)
	for id := uint32(5); id < 2*streams; id += 2 {
		b = headers(b, id, endStream, request("GET", "/hang/"))
	}
	if err := h.send(b); err != nil {
		return 0, err
	}
	r.pause(50 * time.Millisecond)
	some := f.bound / 200
	for burst := bytes.Repeat(f.frame, some); frames < 2*f.bound && !h.gone() && r.ctx.Err() == nil; frames += some {
		if h.send(burst) != nil {
			break
		}
		r.pause(100 * time.Microsecond) // who floods faster hurts itself as much
	}
	return frames, nil
}

var attackSmallData = Attack{
	Name:  "small-data",
	Few:   true,
	About: "20 HTTP/2 connections of 10 uploads in DATA frames of one byte and 200 of padding, 2 MB/s in all",
	run: func(r *rig) error {
		one := frame(nil, http2.FrameData, http2.FlagDataPadded, 0, append([]byte{200, 'x'}, make([]byte, 200)...))
		return r.each(20, 20, func(int) error {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			var b, burst []byte
			for id := uint32(1); id < 20; id += 2 {
				b = headers(b, id, 0, request("POST", "/ok/"))
				at := len(burst)
				burst = append(burst, one...)
				copy(burst[at+5:], word(id))
			}
			if err := h.send(b); err != nil {
				return err
			}
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && h.send(burst) == nil; {
				if !r.pause(20 * time.Millisecond) {
					break
				}
			}
			return nil
		})
	},
}

var attackChunks = Attack{
	Name:  "chunks",
	Few:   true,
	About: "50 HTTP/1.1 uploads in chunks of one byte, half of them with extensions of 300, 1 MB/s in all",
	run: func(r *rig) error {
		return r.each(50, 50, func(i int) error {
			c, err := r.dial("http/1.1", 0)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprint(c, "POST /ok/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
				return err
			}
			piece, some := "1\r\nx\r\n", 66
			if i%2 == 1 {
				piece, some = "1;e="+strings.Repeat("e", 300)+"\r\nx\r\n", 1
			}
			burst := []byte(strings.Repeat(piece, some))
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
				if _, err := c.Write(burst); err != nil || !r.pause(20*time.Millisecond) {
					break // refused, which is fine as well
				}
			}
			return nil
		})
	},
}

var attackTrailers = Attack{
	Name:  "trailers",
	Few:   true,
	About: "trailer sections of 60 KB: of 300 HTTP/1.1 uploads without their end, and of answers to 20 HTTP/2 connections of 50 streams that take nothing",
	Peak:  150,
	run: func(r *rig) error {
		up := "POST /ok/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + hugeTrailer
		if err := r.held(300, []byte(up), 100*time.Millisecond); err != nil {
			return err
		}
		var b []byte
		for id := uint32(1); id < 100; id += 2 {
			b = headers(b, id, endStream, request("GET", "/trailers/"))
		}
		err := r.each(20, 20, func(int) error {
			h, err := r.dialH2(h2options{keeps: true, readBuffer: 4096, settings: setting(http2.SettingInitialWindowSize, 0)})
			if err != nil {
				return err
			}
			return h.send(b)
		})
		r.pause(time.Second)
		return err
	},
}
