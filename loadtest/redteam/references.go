package redteam

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Few bytes that become many: a table entry as large as may be, and then fields of nothing but references to it.

var attackReferences = Attack{
	Name:  "references",
	About: "20 HTTP/2 connections of 250 requests of table references, 29 bytes sent and 60 KB decoded each, to an upstream that hangs",
	Peak:  150,
	run: func(r *rig) error {
		return r.refer(20, func(first, next []byte) []byte {
			b := headers(nil, 1, endStream, first)
			for id := uint32(3); id < 2*streams; id += 2 {
				b = headers(b, id, endStream, next)
			}
			return b
		})
	},
}

var attackReferencesTLS = Attack{
	Name:   "references-tls",
	Few:    true,
	About:  "the same over TLS",
	Secure: true,
	Peak:   150,
	run:    attackReferences.run,
}

var attackMoreReferences = Attack{
	Name:  "references-1mb",
	Few:   true,
	About: "the same over 100 connections: 0.9 MiB of input",
	Peak:  300,
	Ratio: 150, // half of the time 25,000 requests are begun and their upstream connections made
	After: 40,  // the runtime keeps half a KiB for each goroutine that there ever was at a time
	run: func(r *rig) error {
		return r.refer(100, func(first, next []byte) []byte {
			b := headers(nil, 1, endStream, first)
			for id := uint32(3); id < 2*streams; id += 2 {
				b = headers(b, id, endStream, next)
			}
			return b
		})
	},
}

var attackReferenceTrailers = Attack{
	Name:  "reference-trailers",
	Few:   true,
	About: "20 HTTP/2 connections of 250 uploads whose trailers are table references, 60 KB each, to an upstream that hangs",
	Peak:  150,
	run: func(r *rig) error {
		return r.refer(20, func(first, next []byte) []byte {
			b := headers(nil, 1, endStream, first)
			for id := uint32(3); id < 2*streams; id += 2 {
				b = headers(b, id, 0, request("POST", "/hang/"))
			}
			for id := uint32(3); id < 2*streams; id += 2 {
				b = headers(b, id, endStream, onlyReferences)
			}
			return b
		})
	},
}

var attackBombs = Attack{
	Name:  "header-bombs",
	Few:   true,
	About: "10 HTTP/2 connections of 10 heads of 16,000 table references, 60 MB each once decoded",
	Peak:  60,
	run: func(r *rig) error {
		return r.refer(10, func(first, _ []byte) []byte {
			b := headers(nil, 1, endStream, first)
			bomb := append(request("GET", "/hang/"), bytes.Repeat(indexed(nil, firstEntry), 16_000)...)
			for id := uint32(3); id < 23; id += 2 {
				b = headers(b, id, endStream, bomb)
			}
			return b
		})
	},
}

var attackStreams = Attack{
	Name:  "many-streams",
	Few:   true,
	About: "2 HTTP/2 connections that open 4,000 streams each, to an upstream that hangs",
	Peak:  60,
	run: func(r *rig) error {
		err := r.refer(2, func(_, _ []byte) []byte {
			var b []byte
			for id := uint32(1); id < 8000; id += 2 {
				b = headers(b, id, endStream, request("GET", "/hang/"))
			}
			return b
		})
		r.atMost("of 8,000 requests upstream", float64(r.up.places["hang"].requests.Load()), 2*streams)
		return err
	},
}

// refer has connections send what block makes of the references, and holds them.
func (r *rig) refer(connections int, block func(first, next []byte) []byte) error {
	first, next := references(methodGET, "/hang/")
	b := block(first, next)
	err := r.each(connections, connections, func(int) error {
		h, err := r.dialH2(h2options{})
		if err != nil {
			return err
		}
		_ = h.send(b) // or ferryman sends it away, which is fine as well
		return nil
	})
	r.pause(time.Second)
	return err
}

// streams are as many as ferryman allows at once.
const streams = 250

var attackAnsweredReferences = Attack{
	Name:  "references-57kbs",
	Few:   true,
	About: "requests of table references to an upstream that answers at once, 249 in a segment, 57 KB/s in all",
	run: func(r *rig) error {
		const connections, burst, perSecond, lasting = 20, streams - 1, 57_000, 3 * time.Second
		first, next := references(methodGET, "/ok/")
		weight := len(next) + 9
		var all []*h2conn
		for range connections {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			if err := h.send(headers(nil, 1, endStream, first)); err != nil {
				return err
			}
			all = append(all, h)
		}
		begun, done := time.Now(), 0
		for turn := 0; time.Since(begun) < lasting; turn++ {
			h, id := all[turn%connections], uint32(3+2*burst*(turn/connections))
			var b []byte
			for range burst {
				b = headers(b, id, endStream, next)
				id += 2
				done += weight
			}
			if h.send(b) != nil {
				break // sent away, which is fine as well
			}
			due := begun.Add(time.Duration(done) * time.Second / perSecond)
			if d := time.Until(due); d > 0 && !r.pause(d) {
				break
			}
		}
		return nil
	},
}

var attackOversize = Attack{
	Name:  "oversize-heads",
	About: "HTTP/2 heads over the limit (one field of 74,000 bytes; 30 cookies of 4,000): 431 on that stream alone, tables stay in step",
	run: func(r *rig) error {
		const rounds = 20
		heads := [][]byte{request("GET", "/ok/", "x-large", strings.Repeat("a", 74_000))}
		cookies := request("GET", "/ok/")
		for range 30 {
			cookies = literal(cookies, "cookie", "a="+strings.Repeat("c", 4000))
		}
		heads = append(heads, cookies)
		right, tried := 0, 0
		var trouble error
		for _, large := range heads {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			if err := h.send(headers(nil, 1, endStream, request("GET", "/hang/"))); err != nil { // an innocent stream
				return err
			}
			for id := uint32(3); id < 3+4*rounds; id += 4 {
				tried++
				if err := r.oversize(h, id, large); err != nil {
					trouble = err
					break
				}
				right++
			}
			if s := h.awaitStream(1, 0); s != nil {
				trouble = h.why("the other stream has ended")
			}
		}
		r.atLeast(fmt.Sprintf("heads answered with 431 alone, of %d", 2*rounds), float64(right), 2*rounds, trouble)
		r.checks(tried)
		return nil
	},
}

// oversize sends a head that is too large and ends with an entry for the table, and one that refers to it.
func (r *rig) oversize(h *h2conn, id uint32, large []byte) error {
	nonce := fmt.Sprintf("in-step-%d", id)
	b := headers(nil, id, endStream, entered(slices.Clip(large), "x-nonce", nonce))
	b = headers(b, id+2, endStream, indexed(request("GET", "/ok/"), firstEntry))
	if err := h.send(b); err != nil {
		return h.why("a write: %w", err)
	}
	refused, next := h.awaitStream(id, 3*time.Second), h.awaitStream(id+2, 3*time.Second)
	switch {
	case refused == nil || refused.status != "431":
		return h.why("no 431")
	case next == nil || next.nonce != nonce:
		return h.why("the next request is not answered rightly")
	}
	return nil
}
