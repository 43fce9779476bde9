package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// Uploads that stall hold neither each other nor anybody else up.
func TestCase290_StalledUploadsStopNoOther(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 }, toMute(mute(t)))
		h := r.dialH2(t)
		for range 6 {
			id := h.ask("POST", "/mute", false)
			for sent := 0; sent < 20<<20; {
				h.mu.Lock()
				fits := h.fits(id, 16384)
				h.mu.Unlock()
				if !fits && !h.within(3*quiet, func() bool { return h.fits(id, 16384) }) {
					break // neither ferryman nor its upstream takes more
				}
				h.feed(t, id, strings.Repeat("x", 16384))
				sent += 16384
			}
		}
		const size = 20 << 20
		id := h.ask("POST", "/", false, "content-length", "20971520")
		h.upload(t, id, strings.Repeat("y", size))
		h.want(t, id, 200)
		require.Equal(t, int64(size), r.U[1].last(t).bodyLen)
		h.rst()
	})
}

// A window grows as long as what comes is read.
func TestCase290_AnUploadThatIsReadGetsALargeWindow(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		h := r.dialH2(t)
		id := h.ask("POST", "/", false)
		largest := int64(0)
		for range 400 {
			h.feed(t, id, strings.Repeat("x", 16384))
			h.mu.Lock()
			s := h.stream(id)
			largest = max(largest, int64(h.got[http2.SettingInitialWindowSize])+s.granted-s.sent)
			h.mu.Unlock()
		}
		h.data(id, true, "")
		h.want(t, id, 200)
		require.Greater(t, largest, int64(65535))
		require.LessOrEqual(t, largest, int64(1<<20))
	})
}

// A client that has not heard of the settings yet may fill the windows that every server has.
func TestCase290_TheDefaultWindowHoldsUntilTheSettingsAreHeard(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialRawH2(t)
		id := h.id
		h.id += 2
		wire := http2.ClientPreface + rawFrame(http2.FrameSettings, 0, 0, "") +
			rawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, string(h.block(pseudo("POST", "/")...)))
		for left := 65535; left > 0; left -= 16384 {
			wire += rawFrame(http2.FrameData, 0, id, strings.Repeat("x", min(left, 16384)))
		}
		h.frames(t, wire)
		h.greeted = true
		go h.read()
		h.until(t, "window", func() bool { return h.stream(id).granted > 32<<10 && h.got[http2.SettingInitialWindowSize] > 0 })
		h.data(id, true, "end")
		h.want(t, id, 200)
		require.Equal(t, int64(65538), r.U[1].last(t).bodyLen)
		h.alive(t)
	})
}

// When too much waits on all connections together, those that have much of it are read no further. Others are.
func TestCase290_AllUnreadBodiesTogetherAreBounded(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax, s.unread = 1, 1<<20 }, toMute(mute(t)))
		var hoarders []*h2client
		for range 4 {
			h := r.dialH2(t)
			hoarders = append(hoarders, h)
			for range 100 {
				id := h.ask("POST", "/mute", false)
				h.data(id, false, strings.Repeat("x", 16384))
				h.data(id, false, strings.Repeat("x", 16384))
			}
		}
		other := r.dialH2(t)
		id := other.ask("POST", "/", false)
		other.upload(t, id, strings.Repeat("y", 4<<20))
		other.want(t, id, 200)
		for _, h := range hoarders { // they are noticed when they leave
			h.rst()
		}
		other.close()
		r.awaitIdle(t)
	})
}
