package redteam

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"

	"golang.org/x/net/http2"
)

// Clients that take nothing, or that stay for nothing.

var attackReaders = Attack{
	Name:  "slow-readers",
	Few:   true,
	About: "answers of 8 MiB that nobody takes: 100 HTTP/1.1 connections, and 20 of HTTP/2 with 20 streams each",
	Peak:  100,
	run: func(r *rig) error {
		err := r.each(100, 20, func(int) error {
			c, err := r.dial("http/1.1", 4096)
			if err != nil {
				return err
			}
			_, err = c.Write([]byte("GET /big/ HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			return err
		})
		if err != nil {
			return err
		}
		return r.bigAnswers(20, h2options{keeps: true, readBuffer: 4096})
	},
}

var attackNoWindow = Attack{
	Name:  "no-window",
	Few:   true,
	About: "answers of 8 MiB to 20 HTTP/2 connections of 250 streams that never open a window",
	Peak:  150,
	run: func(r *rig) error {
		return r.bigAnswers(streams, h2options{keeps: true, settings: setting(http2.SettingInitialWindowSize, 0)})
	},
}

func (r *rig) bigAnswers(each int, o h2options) error {
	var b []byte
	for i := range each {
		b = headers(b, uint32(1+2*i), endStream, request("GET", "/big/"))
	}
	err := r.each(20, 20, func(int) error {
		h, err := r.dialH2(o)
		if err != nil {
			return err
		}
		return h.send(b)
	})
	r.pause(time.Second)
	return err
}

var attackIdleTLS = Attack{
	Name:   "idle-tls",
	Few:    true,
	About:  "1,000 HTTP/2 connections over TLS that have sent one body of 16 KiB and stay",
	Secure: true, Alone: true,
	Time: 25 * time.Second,
	Peak: 200,
	run: func(r *rig) error {
		const connections = 1000
		before := r.resident()
		b := headers(nil, 1, 0, request("POST", "/ok/", "x-nonce", "idle"))
		b = frame(b, http2.FrameData, http2.FlagDataEndStream, 1, data16K)
		err := r.each(connections, 16, func(int) error {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			if err := h.send(b); err != nil {
				return err
			}
			if s := h.awaitStream(1, 5*time.Second); s == nil || s.status != "200" || s.nonce != "idle" {
				return h.why("no answer")
			}
			r.checks(1)
			return nil
		})
		least := r.resident()
		r.until(16*time.Second, func() bool {
			least = min(least, r.resident())
			return (least-before)*1024/connections <= 36
		})
		r.atMost("KiB for a connection", (least-before)*1024/connections, 36) // of which crypto/tls keeps 17 for the next record
		return err
	},
}

var attackGarbage = Attack{
	Name:   "tls-garbage",
	Few:    true,
	About:  "over TLS: 500 connections of random bytes, 500 that stop within their first record, 200 of plain HTTP",
	Secure: true,
	run: func(r *rig) error {
		plain := &rig{ctx: r.ctx, addr: r.addr, up: r.up, faults: r.faults} // its connections are raw
		defer func() {
			r.sent.Add(plain.sent.Load())
			plain.leave()
		}()
		garbage := make([]byte, 4096)
		_, _ = rand.Read(garbage)
		hello := append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, bytes.Repeat([]byte{7}, 300)...)
		for _, c := range []struct {
			n     int
			bytes []byte
		}{{500, garbage}, {500, hello}, {200, []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")}} {
			if err := plain.held(c.n, c.bytes, 100*time.Millisecond); err != nil {
				return fmt.Errorf("%d connections: %w", c.n, err)
			}
		}
		return nil
	},
}
