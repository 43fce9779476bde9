//go:build !race

package conformance

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// Not under the race detector, whose memory is of another size. .ci/attacks does the same to a process, with
// more of everything.

// bigReferences opens n streams whose heads are 16 references to one entry of 3.8 KB: 61 KB of 60 bytes.
func bigReferences(h *h2client, path string, n int) {
	reference := strings.Repeat("\xbe", 16) // to the newest entry
	for i := range n {
		block := h.block(pseudo("GET", path)...)
		if i == 0 {
			block = append(block, h.block("x-entry", strings.Repeat("e", 3800))...)
		} else {
			block = append(block, reference...)
		}
		id := h.id
		h.id += 2
		h.write(func() error {
			return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
		})
	}
}

func TestCase287_HeadsTakeMemoryInProportionToWhatCame(t *testing.T) {
	forEachModeAlone(t, func(t *testing.T, m mode) {
		addr := mute(t)
		r := newRig(t, m, toMute(addr))
		const connections, streams = 4, 250
		var clients []*h2client
		before := int64(inUse())
		for range connections {
			h := r.dialH2(t)
			h.alive(t)
			bigReferences(h, "/mute", streams)
			clients = append(clients, h)
		}
		eventually(t, func() bool {
			return r.sum("ferryman_upstream_connections", addr, `state="in_use"`) == connections*streams
		}, "not all are forwarded")
		each := (int64(inUse()) - before) / (connections * streams)
		t.Logf("%d bytes for a stream", each)
		require.Less(t, each, int64(24<<10), "a head of 61 KB is held, or nearly")
		for _, h := range clients {
			h.close()
		}
		r.awaitIdle(t)
		eventually(t, func() bool { return int64(inUse())-before < 4<<20 }, "memory stays")
	})
}

// A connection that was given a large frame is as small as before once it is idle.
func TestCase295_IdleConnectionsHoldNoFrame(t *testing.T) {
	forEachModeAlone(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		const connections = 60
		measure := func(large bool) int64 {
			var clients []*h2client
			before := int64(inUse())
			for range connections {
				h := r.dialH2(t)
				id := h.ask("POST", "/", false)
				piece := "x"
				if large {
					piece = strings.Repeat("x", 16384)
				}
				// Not by the framer, which would keep a buffer as large.
				h.write(func() error {
					_, err := io.WriteString(h.conn, rawFrame(http2.FrameData, http2.FlagDataEndStream, id, piece))
					return err
				})
				h.want(t, id, 200)
				clients = append(clients, h)
			}
			eventually(t, func() bool { return r.sum("ferryman_connections", "idle") == connections }, "not all are idle")
			r.forget()
			each := (int64(inUse()) - before) / connections
			for _, h := range clients {
				h.close()
			}
			r.awaitIdle(t)
			return each
		}
		measure(true)           // what is made once
		least := int64(1 << 30) // what other cases leave behind comes and goes
		for range 3 {
			small, large := measure(false), measure(true)
			t.Logf("%d bytes each after a small frame, %d after a large one", small, large)
			least = min(least, large-small)
		}
		require.Less(t, least, int64(24<<10), "of which crypto/tls keeps a record on each side, and the client a frame")
	})
}

func TestCase290_WindowsOfStalledUploadsAreSmall(t *testing.T) {
	forEachModeAlone(t, func(t *testing.T, m mode) {
		r := newRig(t, m, toMute(mute(t)))
		before := int64(inUse())
		h := r.dialH2(t, h2options{manual: true})
		h.until(t, "settings", func() bool { return h.got[http2.SettingInitialWindowSize] > 0 && h.acks == 1 })
		window := int64(h.got[http2.SettingInitialWindowSize])
		require.LessOrEqual(t, 250*window, int64(16<<20))
		piece := strings.Repeat("x", 8192)
		sent := int64(0)
		for range 240 {
			id := h.ask("POST", "/mute", false)
			for n := int64(0); n+int64(len(piece)) <= window; n += int64(len(piece)) {
				h.data(id, false, piece)
				sent += int64(len(piece))
			}
		}
		// Another stream is served although all of these are full.
		h.want(t, h.ask("GET", "/", true), 200)
		grown := int64(inUse()) - before
		t.Logf("%d bytes were sent, %d are held", sent, grown)
		require.Less(t, grown, int64(24<<20))
		h.rst()
		r.awaitIdle(t)
		eventually(t, func() bool { return int64(inUse())-before < 4<<20 }, "memory stays")
	})
}

func TestCase294_FloodsOfControlFramesAreSentAway(t *testing.T) {
	for name, bytes := range h2Floods {
		if name == "padding" || name == "RST_STREAM" {
			continue // one costs windows, the other is an error of the connection once it was sent
		}
		t.Run(name, func(t *testing.T) {
			forEachH2Mode(t, func(t *testing.T, m mode) {
				r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
				r.U[1].play(hang)
				h := r.dialH2(t)
				h.ask("POST", "/", false)
				r.U[1].awaitStarted(t, 1)
				burst := strings.Repeat(bytes, 1000)
				for i := 0; i < 20 && h.writeErr == nil; i++ {
					h.write(func() error { _, err := io.WriteString(h.conn, burst); return err })
				}
				require.Equal(t, http2.ErrCodeEnhanceYourCalm, h.gone(t, patience).code)
				other := r.dialH2(t)
				other.want(t, other.ask("GET", "/api", true), 200)
			})
		})
	}
}
