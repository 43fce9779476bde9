package redteam

import (
	"time"
)

// Clients that are gone before they have been served, and streams that are opened to be reset.

var attackGone = Attack{
	Name:  "gone-clients",
	About: "15 connections of 250 POSTs in one segment, then a TCP reset; 100 times HEADERS and RST_STREAM in one segment; 300 HTTP/1.1 POSTs and a reset",
	run: func(r *rig) error {
		hang := r.up.places["hang"]
		var b []byte
		for id := uint32(1); id < 2*streams; id += 2 {
			b = headers(b, id, endStream, request("POST", "/hang/"))
		}
		reached := func(name string, bound float64, step func() error) error {
			before := hang.requests.Load()
			err := step()
			r.pause(300 * time.Millisecond)
			r.atMost(name, float64(hang.requests.Load()-before), bound)
			return err
		}
		err := reached("of 3,750 POSTs upstream", 375, func() error {
			for range 15 {
				h, err := r.dialH2(h2options{})
				if err != nil {
					return err
				}
				h.await(time.Second, func() bool { return h.acks > 0 })
				if err := h.send(b); err != nil {
					return err
				}
				h.reset()
				r.pause(10 * time.Millisecond)
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = reached("of 100 requests reset at once upstream", 10, func() error {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			h.await(time.Second, func() bool { return h.acks > 0 })
			for id := uint32(1); id < 200; id += 2 {
				if err := h.send(resetFrame(headers(nil, id, endStream, request("POST", "/hang/")), id)); err != nil {
					return err
				}
				r.pause(2 * time.Millisecond)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return reached("of 300 HTTP/1.1 POSTs upstream", 100, // some are sent before the reset has come
			func() error {
				for range 300 {
					c, err := r.dial("http/1.1", 0)
					if err != nil {
						return err
					}
					if _, err := c.Write([]byte("POST /hang/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")); err != nil {
						return err
					}
					c.reset()
				}
				return nil
			})
	},
}

var attackRapidReset = Attack{
	Name:  "rapid-reset",
	About: "20 HTTP/2 connections that open streams to reset them, 50,000 a second in all: each is sent away within 10,000",
	run: func(r *rig) error {
		const most = 20_000
		taken := make([]int, 20)
		err := r.each(len(taken), len(taken), func(i int) error {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			for id := uint32(1); taken[i] < most && !h.gone(); {
				var b []byte
				for range 50 {
					b = resetFrame(headers(b, id, endStream, request("GET", "/hang/")), id)
					id += 2
				}
				if h.send(b) != nil {
					break
				}
				taken[i] += 50
				r.pause(20 * time.Millisecond)
			}
			return nil
		})
		worst := 0
		for _, n := range taken {
			worst = max(worst, n)
		}
		r.atMost("streams taken of one", float64(worst), 10_000)
		return err
	},
}
