package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// frames writes whole frames in one segment, or in a record of TLS.
func (h *h2client) frames(t testing.TB, wire string) {
	t.Helper()
	h.write(func() error { _, err := h.conn.Write([]byte(wire)); return err })
}

// posts are n POSTs with an end, as bytes.
func posts(h *h2client, n int) (wire string) {
	for range n {
		wire += rawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, h.id, string(h.block(pseudo("POST", "/")...)))
		h.id += 2
	}
	return wire
}

func TestCase288_AClientThatIsGoneSendsNoRequest(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		const rounds = 15
		for range rounds {
			h := r.dialRawH2(t)
			wire := http2.ClientPreface + rawFrame(http2.FrameSettings, 0, 0, "") + posts(h, 250)
			h.frames(t, wire)
			h.rst()
		}
		r.awaitIdle(t)
		// Some may be under way before the reset has come.
		seen := len(r.U[1].started())
		t.Logf("%d of %d requests were sent", seen, rounds*250)
		require.Less(t, seen, rounds*250/10)
		r.get(t, "/api")
	})
}

func TestCase288_WhatIsTakenBackAtOnceIsNotSent(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		h.alive(t)
		const streams = 60 // less than what is read at a time
		var wire strings.Builder
		for range streams {
			id := h.id
			wire.WriteString(posts(h, 1))
			wire.WriteString(rawFrame(http2.FrameRSTStream, 0, id, "\x00\x00\x00\x08"))
		}
		h.frames(t, wire.String())
		h.alive(t)
		require.Len(t, r.U[1].started(), 2, "only the two that were not taken back")
	})
}

// What ferryman has ended by itself is no fault of a client that goes on sending for a while.
func TestCase289_LateFramesAreIgnored(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		h := r.dialH2(t)
		h.alive(t)
		for name, late := range map[string]func(id uint32){
			"DATA":            func(id uint32) { h.data(id, false, "late"); h.data(id, true, "") },
			"trailers":        func(id uint32) { h.headers(id, true, "x-t", "1") },
			"DATA, then RST":  func(id uint32) { h.data(id, false, "late"); h.rstStream(id, http2.ErrCodeCancel) },
			"WINDOW_UPDATE":   func(id uint32) { h.grant(id, 1000); h.data(id, true, "") },
			"an empty DATA":   func(id uint32) { h.data(id, true, "") },
			"nothing, or RST": func(id uint32) { h.rstStream(id, http2.ErrCodeCancel) },
		} {
			var ids []uint32
			for range 250 {
				ids = append(ids, h.ask("POST", "/nowhere-at-all/../", false)) // 400
			}
			for _, id := range ids {
				h.until(t, name+": the reset", func() bool { return h.stream(id).reset != nil })
			}
			for _, id := range ids {
				late(id)
			}
			h.alive(t)
		}
		require.Empty(t, h.goaways)
	})
}

func TestCase289_UploadsToAnUpstreamThatDiesEndNoConnection(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		r.U[2].playAlways(func(c *uconn, _ *message) bool { c.reset(); return false })
		h := r.dialH2(t)
		var ids []uint32
		for range 200 {
			ids = append(ids, h.ask("POST", "/api", false))
		}
		for range 3 {
			for _, id := range ids {
				h.data(id, false, "still coming")
			}
		}
		for _, id := range ids {
			h.answer(t, id)
			h.data(id, true, "the end")
		}
		h.alive(t)
		require.Empty(t, h.goaways)
	})
}

// A client that takes back what it has waited for is not sent away, one that takes everything back at once
// hears of it in time.
func TestCase296_APageThatIsLeftAgainAndAgain(t *testing.T) {
	leftAgainAndAgain(t, func(h *h2client, id uint32) { h.rstStream(id, http2.ErrCodeCancel) })
}

// leftAgainAndAgain opens a page of 240 requests six times, and leaves it after a look.
func leftAgainAndAgain(t *testing.T, leave func(h *h2client, id uint32)) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		r.U[2].playAlways(hang)
		h := r.dialH2(t)
		for round := range 6 {
			var ids []uint32
			for range 240 {
				ids = append(ids, h.ask("GET", "/api", true))
			}
			r.U[2].awaitStarted(t, 240*(round+1))
			pause(100 * time.Millisecond) // the person looks at the page
			for _, id := range ids {
				leave(h, id)
			}
			h.alive(t)
			eventually(t, func() bool { return r.sum("ferryman_upstream_connections", r.U[2].addr, `state="in_use"`) == 0 }, "they are not dropped")
		}
		require.Empty(t, h.goaways)
	})
}

func TestCase296_WhoMustGoIsServedFirst(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		goOn := make(chan struct{})
		r.U[2].playAlways(func(c *uconn, q *message) bool { c.body(q); <-goOn; return c.send(ok("served")) })
		h := r.dialH2(t)
		slow := h.ask("GET", "/api", true)
		r.U[2].awaitStarted(t, 1)
		for range 1300 { // more than is borne, less than what ends the connection
			h.rstStream(h.ask("GET", "/", true), http2.ErrCodeCancel)
		}
		h.until(t, "GOAWAY", func() bool { return len(h.goaways) > 0 })
		require.Equal(t, http2.ErrCodeNo, h.goaways[0].code)
		close(goOn)
		require.Equal(t, "served", string(h.want(t, slow, 200).data))
		require.Equal(t, http2.ErrCodeNo, h.gone(t, patience).code)
	})
}

// The answer to an upload that goes on comes before the reset, by a moment: Debian 12's curl loses it else.
func TestCase300_AnEarlyAnswerLeavesBeforeTheReset(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		longest := time.Duration(0) // a reader that is held up finds both at once
		for range 10 {
			r.U[1].play(func(c *uconn, _ *message) bool {
				c.send("HTTP/1.1 413 Too Large\r\nX-U: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch")
				return false
			})
			id := h.ask("POST", "/", false)
			h.data(id, false, "the first of many")
			h.until(t, "the answer", func() bool { return h.stream(id).end })
			h.data(id, false, "it did not know")
			h.until(t, "the reset", func() bool { return h.stream(id).reset != nil })
			s := h.answer(t, id)
			require.Equal(t, http2.ErrCodeNo, *s.reset)
			longest = max(longest, s.resetAt.Sub(s.endAt))
		}
		require.Greater(t, longest, 10*time.Millisecond)
		// An upload that ends in that moment needs no reset. Here it may be held up for longer, but not always.
		eventually(t, func() bool {
			id := h.ask("POST", "/x/../", false)
			h.until(t, "the answer", func() bool { return h.stream(id).end })
			h.data(id, true, "")
			h.alive(t)
			pause(quiet)
			return h.answer(t, id).reset == nil
		}, "always a reset")
		require.Empty(t, h.goaways)
	})
}

// A client that gives up its upload, once it has the head of the answer, gets the rest of the answer.
func TestCase300_AnUploadThatIsGivenUpCutsNoAnswer(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		given := make(chan struct{})
		r.U[1].play(func(c *uconn, _ *message) bool {
			c.send("HTTP/1.1 403 Forbidden\r\nX-U: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\n")
			<-given
			c.send("gone")
			return false
		})
		id := h.ask("POST", "/", false, "content-length", "1000000")
		h.data(id, false, "the first of many")
		h.until(t, "the head", func() bool { return h.stream(id).log != nil })
		h.data(id, true, "")
		h.alive(t) // so that it was read
		close(given)
		require.Equal(t, "gone", string(h.want(t, id, 403).data))
		require.Empty(t, h.goaways)
	})
}

// The frames that browsers send beside a request are no waste, also where the request is cancelled.
func TestCase296_PrioritiesOfCancelledRequestsAreNoWaste(t *testing.T) {
	leftAgainAndAgain(t, func(h *h2client, id uint32) {
		h.write(func() error { return h.fr.WritePriority(id, http2.PriorityParam{StreamDep: 0, Weight: 1}) })
		h.rstStream(id, http2.ErrCodeCancel)
	})
}
