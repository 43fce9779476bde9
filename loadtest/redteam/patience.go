package redteam

import (
	"bytes"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// Clients that have time. What they begin must end when its time is over, whatever trickles.

// lasts is how long ferryman keeps a connection on which something trickles, or nothing until bound: then a byte tells.
// It is over bound where the connection is still there.
func (c *conn) lasts(trickle []byte, bound time.Duration) time.Duration {
	begun := time.Now()
	for c.r.pause(500*time.Millisecond) && time.Since(begun) < bound+2*time.Second {
		b := trickle
		if b == nil && time.Since(begun) > bound-time.Second {
			b = []byte("x")
		}
		if _, err := c.Write(b); err != nil {
			break
		}
	}
	return time.Since(begun)
}

// patients are connections that say something, and then trickle.
type patients struct {
	name           string
	n              int
	raw            bool // without TLS
	says, trickles []byte
	bound          time.Duration
}

// outwait reports the longest that any of each kind lasts.
func (r *rig) outwait(kinds []patients) error {
	plain := &rig{ctx: r.ctx, addr: r.addr, up: r.up, faults: r.faults}
	defer plain.leave()
	var all sync.WaitGroup
	for _, k := range kinds {
		all.Go(func() {
			var mu sync.Mutex
			longest := time.Duration(0)
			err := r.each(k.n, k.n, func(int) error {
				from := r
				if k.raw {
					from = plain
				}
				c, err := from.dial("h2", 0)
				if err != nil {
					return err
				}
				if _, err := c.Write(k.says); err != nil {
					return err
				}
				lasted := c.lasts(k.trickles, k.bound)
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, lasted)
				return nil
			})
			if err != nil {
				r.faults.add("%s: %v", k.name, err)
			}
			r.atMost("s that "+k.name+" last", longest.Seconds(), k.bound.Seconds())
		})
	}
	all.Wait()
	return nil
}

var (
	beginning = frame([]byte(http2.ClientPreface), http2.FrameSettings, 0, 0, nil)
	begunHead = frame(bytes.Clone(beginning), http2.FrameHeaders, endStream, 1, request("GET", "/ok/"))
	emptyMore = frame(nil, http2.FrameContinuation, 0, 1, nil)
)

var attackTrickles = Attack{
	Name:   "trickles",
	Few:    true,
	About:  "over TLS: handshakes, and HTTP/2 heads, that trickle: none has more than 10 s",
	Secure: true, Alone: true,
	Time: 20 * time.Second,
	run: func(r *rig) error {
		return r.outwait([]patients{
			{"handshakes", 100, true, []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, []byte{7}, 12 * time.Second},
			{"heads", 100, false, begunHead, emptyMore, 12 * time.Second},
		})
	},
}

var attackLingering = Attack{
	Name:  "lingering",
	Few:   true,
	About: "refused HTTP/1.1 uploads that pause for more than 5 s, or trickle for more than 30 s",
	Alone: true,
	Time:  45 * time.Second,
	run: func(r *rig) error {
		refused := []byte("POST /refuse/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx")
		return r.outwait([]patients{
			{"refused uploads that pause", 50, false, refused, nil, 8 * time.Second},
			{"refused uploads that trickle", 50, false, refused, []byte("x"), 33 * time.Second},
		})
	},
}

var attackUnheard = Attack{
	Name:  "unheard",
	Few:   true,
	About: "20 HTTP/2 connections that send up to 4 MiB of PINGs and read none of the answers",
	run: func(r *rig) error {
		pings := bytes.Repeat(frame(nil, http2.FramePing, 0, 0, make([]byte, 8)), 600)
		return r.each(20, 20, func(int) error {
			c, err := r.dial("h2", 4096)
			if err != nil {
				return err
			}
			if _, err := c.Write(beginning); err != nil {
				return err
			}
			for n := 0; n < 4<<20; n += len(pings) {
				if _, err := c.Write(pings); err != nil {
					break // it is cut off
				}
			}
			return nil
		})
	},
}
