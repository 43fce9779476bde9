package redteam

import (
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// Heads that are large, and held: not ended, or ended and then not answered.

// largeHead is a head of about n bytes without its end.
func largeHead(path string, n int) string {
	const line = 500
	head := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n"
	for len(head) < n-line {
		head += "X-Large: " + strings.Repeat("h", line) + "\r\n"
	}
	return head + "X-Rest: " + strings.Repeat("r", max(0, n-len(head)-len("X-Rest: ")))
}

// held has connections send some bytes each, and keeps them for a while.
func (r *rig) held(connections int, b []byte, d time.Duration) error {
	err := r.each(connections, 64, func(int) error {
		c, err := r.dial("http/1.1", 0)
		if err != nil {
			return err
		}
		if _, err = c.Write(b); len(b) > 16<<10 {
			r.pause(20 * time.Millisecond) // what is felt should be the heads, not their copying
		}
		return err
	})
	r.pause(d)
	return err
}

var attackHeads = Attack{
	Name:  "heads-63k",
	Few:   true,
	About: "2,000 HTTP/1.1 connections of 63 KiB of a head each, without its end",
	Peak:  240, // 123 MiB are sent
	run: func(r *rig) error {
		return r.held(2000, []byte(largeHead("/ok/", 63<<10)), time.Second)
	},
}

var attackBegunHeads = Attack{
	Name:  "heads-5k",
	Few:   true,
	About: "2,000 HTTP/1.1 connections of 5 KiB of a head each, without its end",
	Peak:  80, // 10 MiB are sent
	run: func(r *rig) error {
		return r.held(2000, []byte(largeHead("/ok/", 5<<10)), time.Second)
	},
}

var attackHeadsHang = Attack{
	Name:  "heads-hang",
	Few:   true,
	About: "500 HTTP/1.1 requests of 63 KiB to an upstream that hangs",
	Peak:  130, // 31 MiB are sent
	run: func(r *rig) error {
		return r.held(500, []byte(largeHead("/hang/", 63<<10)+"\r\n\r\n"), time.Second)
	},
}

var attackSmallHeadsHang = Attack{
	Name:  "small-heads-hang",
	Few:   true,
	About: "2,000 HTTP/1.1 requests of 50 bytes to an upstream that hangs",
	Peak:  80,
	run: func(r *rig) error {
		return r.held(2000, []byte("GET /hang/ HTTP/1.1\r\nHost: localhost\r\n\r\n"), time.Second)
	},
}

var attackContinuation = Attack{
	Name:  "continuation",
	Few:   true,
	About: "HTTP/2 heads that do not end: 500 connections of 63 KiB each, then two that flood with CONTINUATIONs, empty ones and ones of a field",
	Peak:  150, // 31 MiB are sent at first
	run: func(r *rig) error {
		large := request("GET", "/ok/", "x-large", strings.Repeat("~", 60<<10))
		whole := []byte(http2.ClientPreface)
		whole = frame(whole, http2.FrameSettings, 0, 0, nil)
		b := headers(nil, 1, endStream, large)
		b = headersOpen(b)
		err := r.held(500, append(whole, b...), 500*time.Millisecond)
		if err != nil {
			return err
		}
		return r.continued()
	},
}

// headersOpen takes END_HEADERS off the last frame.
func headersOpen(b []byte) []byte {
	for i := 0; i < len(b); {
		n := int(b[i])<<16 | int(b[i+1])<<8 | int(b[i+2])
		if i+9+n == len(b) {
			b[i+4] &^= byte(http2.FlagHeadersEndHeaders)
		}
		i += 9 + n
	}
	return b
}

// continued floods with CONTINUATION: empty ones, and ones with a field. Both must end soon.
func (r *rig) continued() error {
	const each = 100_000
	frames := 0
	for _, block := range [][]byte{nil, literal(nil, "x", "1")} {
		h, err := r.dialH2(h2options{})
		if err != nil {
			return err
		}
		b := frame(nil, http2.FrameHeaders, endStream, 1, request("GET", "/ok/"))
		var burst []byte
		for range 100 {
			burst = frame(burst, http2.FrameContinuation, 0, 1, block)
		}
		if h.send(b) != nil {
			continue
		}
		for n := 0; n < each && !h.gone(); n += 100 {
			if h.send(burst) != nil {
				break
			}
			if frames += 100; frames%1000 == 0 {
				r.pause(time.Millisecond) // for what is answered to be heard
			}
		}
	}
	r.atMost("CONTINUATIONs taken", float64(frames), 50_000)
	return nil
}
