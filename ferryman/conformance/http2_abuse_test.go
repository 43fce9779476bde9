package conformance

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// heapGrowth is what a step leaves on the heap at its peak, looked at while it runs.
func heapGrowth(step func(look func())) (grown int64) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapInuse)
	}
	before := heap()
	step(func() { grown = max(grown, heap()-before) })
	return grown
}

func TestCase265_RapidReset(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
		r.U[1].playAlways(func(c *uconn, q *message) bool { c.unrecorded(); return hang(c, q) })
		h := r.dialH2(t)
		other := r.dialH2(t)
		sent, begun := 0, time.Now()
		for ; sent < 100_000 && h.writeErr == nil; sent++ {
			id := h.ask("GET", "/", true)
			h.rstStream(id, http2.ErrCodeCancel)
			if sent%100 == 0 {
				in := r.sum("ferryman_upstream_connections", `state="in_use"`)
				require.LessOrEqual(t, int(in), 251)
				other.want(t, other.ask("GET", "/api", true), 200)
			}
		}
		require.Less(t, sent, 100_000, "the client must be sent away")
		h.gone(t, patience)
		require.Equal(t, http2.ErrCodeNo, h.goaways[0].code, "what it has opened is served first")
		forgiven := 100 * (2 + int(time.Since(begun)/time.Second))
		require.LessOrEqual(t, len(r.U[1].started()), 1000+forgiven)
		other.want(t, other.ask("GET", "/api", true), 200)
	})
}

func TestCase266_EndlessContinuation(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		for _, fields := range [][]string{nil, {"x", "1"}, {"x-long", strings.Repeat("~", 10000)}} {
			r := newRig(t, m, shortHeads)
			h := r.dialH2(t)
			h.alive(t)
			begun := time.Now()
			h.id += 2
			h.write(func() error {
				return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: h.block(pseudo("GET", "/mal")...), EndStream: true})
			})
			for i := 0; h.writeErr == nil; i++ {
				h.write(func() error { return h.fr.WriteContinuation(3, false, h.block(fields...)) })
				require.Less(t, time.Since(begun), soon)
			}
			h.gone(t, patience)
			require.Len(t, r.allHeads(), 1)
		}
	})
}

func TestCase267_Floods(t *testing.T) {
	for name, bytes := range h2Floods {
		t.Run(name, func(t *testing.T) {
			forEachH2Mode(t, func(t *testing.T, m mode) {
				r := newRig(t, m, func(s *setup) { s.recordMax = 1 })
				r.U[1].play(hang)
				h := r.dialH2(t)
				h.ask("POST", "/", false)
				r.U[1].awaitStarted(t, 1)
				burst := strings.Repeat(bytes, 4000)
				for i := 0; i < scaled(10) && h.writeErr == nil; i++ {
					h.write(func() error { _, err := h.conn.Write([]byte(burst)); return err })
				}
				other := r.dialH2(t)
				other.want(t, other.ask("GET", "/api", true), 200)
				h.rst()
			})
		})
	}
}

func TestCase267_AnswersThatNobodyReadAreBounded(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialRawH2(t, h2options{rcvbuf: 4096})
		h.send(http2.ClientPreface)
		h.write(func() error { return h.fr.WriteSettings() })
		ping := strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 4000)
		for i := 0; i < 3000 && h.writeErr == nil; i++ {
			h.write(func() error { _, err := h.conn.Write([]byte(ping)); return err })
		}
		require.Error(t, h.writeErr, "the client must be cut off")
		r.awaitIdle(t)
	})
}

func TestCase267_ManySettingsInAFrame(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		h.write(func() error { return h.fr.WriteSettings(make([]http2.Setting, 2000)...) })
		require.Equal(t, http2.ErrCodeEnhanceYourCalm, h.gone(t, patience).code)
		h = r.dialH2(t)
		h.write(func() error { return h.fr.WriteSettings(make([]http2.Setting, 100_000)...) })
		require.Equal(t, http2.ErrCodeFrameSize, h.gone(t, patience).code)
	})
}

func TestCase267_TinyDataFrames(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		id := h.ask("POST", "/", false)
		for range 3000 {
			h.feed(t, id, "x")
			h.data(id, false, "")
		}
		h.data(id, true, "")
		h.want(t, id, 200)
		require.Equal(t, int64(3000), r.U[1].last(t).bodyLen)
	})
}

func TestCase268_HeaderBombs(t *testing.T) {
	forEachModeAlone(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		grown := heapGrowth(func(look func()) {
			for range 5 {
				h := r.dialH2(t)
				s := h.answer(t, headerBomb(h))
				require.True(t, h.ended != nil || s.final().status == "431", "%s", h)
			}
			look()
		})
		require.Less(t, grown, int64(64<<20))
		// Names without number are no memory.
		h := r.dialH2(t)
		for i := range 2000 {
			h.want(t, h.ask("GET", "/", true, fmt.Sprintf("x-%d-%s", i, strings.Repeat("n", 200)), "1"), 200)
		}
		h.alive(t)
		// A table larger than allowed.
		h = r.dialH2(t)
		h.write(func() error {
			return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x3f, 0xe1, 0xff, 0xff, 0x07}, EndStream: true, EndHeaders: true})
		})
		require.Equal(t, http2.ErrCodeCompression, h.gone(t, patience).code)
		for _, q := range r.allHeads() {
			require.NotEqual(t, "/mal", q.target)
		}
	})
}
