package conformance

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

func rawFrame(typ http2.FrameType, flags http2.Flags, id uint32, payload string) string {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), byte(typ), byte(flags)}
	return string(binary.BigEndian.AppendUint32(b, id)) + payload
}

// h2Floods are frames that cost a client nothing, on a connection with stream 1 open.
var h2Floods = map[string]string{
	"SETTINGS":             rawFrame(http2.FrameSettings, 0, 0, ""),
	"SETTINGS with values": rawFrame(http2.FrameSettings, 0, 0, "\x00\x04\x00\x00\x10\x00\x00\x01\x00\x00\x00\x00"),
	"SETTINGS ack":         rawFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, ""),
	"PING":                 rawFrame(http2.FramePing, 0, 0, "12345678"),
	"PING ack":             rawFrame(http2.FramePing, http2.FlagPingAck, 0, "12345678"),
	"empty DATA":           rawFrame(http2.FrameData, 0, 1, ""),
	"padding":              rawFrame(http2.FrameData, http2.FlagDataPadded, 1, "\x05\x00\x00\x00\x00\x00"),
	"PRIORITY":             rawFrame(http2.FramePriority, 0, 1, "\x00\x00\x00\x00\x10"),
	"WINDOW_UPDATE":        rawFrame(http2.FrameWindowUpdate, 0, 1, "\x00\x00\x00\x01"),
	"unknown":              rawFrame(0xbe, 0, 1, "anything"),
	"RST_STREAM":           rawFrame(http2.FrameRSTStream, 0, 1, "\x00\x00\x00\x08"),
}

// headerBomb refers to one large entry of the dynamic table 16 000 times.
func headerBomb(h *h2client) (id uint32) {
	big := h.block("x-bomb", strings.Repeat("b", 3900))
	block := append(append(h.block(pseudo("GET", "/mal")...), big...), []byte(strings.Repeat("\xbe", 16000))...) // the newest entry
	id = h.id
	h.id += 2
	h.write(func() error {
		return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:16384], EndStream: true})
	})
	h.write(func() error { return h.fr.WriteContinuation(id, true, block[16384:]) })
	return id
}

// endlessHead goes on with CONTINUATION frames until it is cut off.
func endlessHead(h *h2client) {
	h.write(func() error {
		return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: h.id, BlockFragment: h.block(pseudo("GET", "/mal")...), EndStream: true})
	})
	for h.writeErr == nil {
		h.write(func() error {
			return h.fr.WriteContinuation(h.id, false, h.block("x-long", strings.Repeat("~", 10000)))
		})
	}
}

// rapidReset takes streams back at once until it is sent away.
func rapidReset(h *h2client) {
	for range 100_000 {
		if h.writeErr != nil {
			return
		}
		h.rstStream(h.ask("GET", "/", true), http2.ErrCodeCancel)
	}
}

// TestCase271_NothingStaysOfAttacks does what cases 265 to 268 do, by turns, for a part of the minute
// that is asked for.
func TestCase271_NothingStaysOfAttacks(t *testing.T) {
	attacks := map[string]func(*h2client){"rapid reset": rapidReset, "endless head": endlessHead,
		"header bomb": func(h *h2client) { h.answer(h.t, headerBomb(h)) }}
	for name, bytes := range h2Floods {
		attacks[name] = func(h *h2client) {
			h.ask("POST", "/", false)
			for i := 0; i < 2 && h.writeErr == nil; i++ {
				h.write(func() error { _, err := h.conn.Write([]byte(strings.Repeat(bytes, 4000))); return err })
			}
		}
	}
	forEachModeAlone(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortHeads, func(s *setup) { s.recordMax = 1 })
		r.U[1].playAlways(func(c *uconn, q *message) bool { c.unrecorded(); return hang(c, q) })
		round := func() {
			for _, attack := range attacks {
				h := r.dialH2(t)
				attack(h)
				h.rst()
			}
			r.awaitIdle(t)
			r.forget()
		}
		round() // makes what is made once
		memory := liveHeap()
		for range scaled(1) {
			round()
		}
		allowed, after := memory+memory/5+512<<10, liveHeap() // a fifth is next to nothing here
		within(3*time.Second, func() bool { r.forget(); after = liveHeap(); return after <= allowed })
		require.LessOrEqual(t, after, allowed, "memory stays")
		t.Logf("%d KiB, %d KiB before", after>>10, memory>>10)
		eventually(t, func() bool { return r.goroutines() <= r.atRest() }, "goroutines stay")
		require.Equal(t, 200, r.get(t, "/api").status)
	})
}

// forget drops what the rig has kept of connections that are over.
func (r *rig) forget() {
	r.mu.Lock()
	r.clients = nil
	r.mu.Unlock()
	for _, u := range r.U[1:] {
		u.mu.Lock()
		u.heads, u.whole = nil, nil
		u.conns = slices.DeleteFunc(u.conns, func(c *uconn) bool {
			select {
			case <-c.ended:
				return true
			default:
				return false
			}
		})
		u.mu.Unlock()
	}
}
