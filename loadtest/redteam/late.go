package redteam

import (
	"bytes"
	"fmt"
	"time"

	"golang.org/x/net/http2"
)

// Frames that were under way when ferryman ended their streams. Who sent them has done nothing wrong.

var attackLate = Attack{
	Name:  "late-frames",
	About: "frames under way for streams that ferryman has ended: DATA of 250 refused uploads, of 200 whose upstream dies, trailers on 100 streams, DATA behind a 413",
	run: func(r *rig) error {
		for _, c := range []struct {
			name string
			play func(h *h2conn) (next uint32, err error)
		}{
			{"DATA of 250 refused uploads", lateData(250, "/refuse/", nil)},
			{"DATA of 200 uploads whose upstream dies", lateData(200, "/die/", func() { r.up.places["die"].resetAll() })},
			{"trailers on 100 streams", lateTrailers},
			{"DATA behind a 413, 300 times", lateAgain},
		} {
			h, err := r.dialH2(h2options{})
			if err != nil {
				return err
			}
			next, err := c.play(h)
			if err == nil {
				err = h.alive(next)
			}
			lives := 1.0
			if err != nil {
				lives = 0
			}
			r.atLeast("connection that lives on behind "+c.name, lives, 1, err)
		}
		return nil
	},
}

// lateData has uploads go on while they come to an end, within the windows that there are at the start.
func lateData(uploads int, path string, end func()) func(*h2conn) (uint32, error) {
	return func(h *h2conn) (uint32, error) {
		const rounds = 14
		var b, round []byte
		piece := bytes.Repeat([]byte("u"), 240)
		for i := range uploads {
			id := uint32(1 + 2*i)
			b = headers(b, id, 0, request("POST", path, "content-length", fmt.Sprint(rounds*len(piece))))
			round = frame(round, http2.FrameData, 0, id, piece)
		}
		next := uint32(1 + 2*uploads)
		h.await(time.Second, func() bool { return h.acks > 0 })
		if err := h.send(append(b, round...)); err != nil {
			return next, h.why("a write: %w", err)
		}
		if end != nil {
			h.r.pause(200 * time.Millisecond)
			end()
		}
		for range rounds - 2 {
			if err := h.send(round); err != nil {
				return next, h.why("a write: %w", err)
			}
			h.r.pause(10 * time.Millisecond)
		}
		return next, nil
	}
}

func lateTrailers(h *h2conn) (uint32, error) {
	const n = 100
	var b, trailers []byte
	for i := range n {
		id := uint32(1 + 2*i)
		b = headers(b, id, 0, request("POST", "/refuse/"))
		trailers = headers(trailers, id, endStream, literal(nil, "x-trailer", "1"))
	}
	if err := h.send(b); err != nil {
		return 0, err
	}
	h.await(3*time.Second, func() bool {
		done := 0
		for _, s := range h.streams {
			if s.reset != nil {
				done++
			}
		}
		return done == n
	})
	return 1 + 2*n, h.send(trailers)
}

func lateAgain(h *h2conn) (uint32, error) {
	const n = 300
	for i := range n {
		id := uint32(1 + 2*i)
		if err := h.send(headers(nil, id, 0, request("POST", "/refuse/"))); err != nil {
			return 0, h.why("a write: %w", err)
		}
		if s := h.awaitStream(id, 3*time.Second); s == nil || s.status != "413" {
			return 0, h.why("no 413")
		}
		h.r.checks(1)
		if err := h.send(frame(nil, http2.FrameData, 0, id, data16K[:500])); err != nil {
			return 0, h.why("a write: %w", err)
		}
	}
	return 1 + 2*n, nil
}
