package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

const lastStream = 1<<31 - 1

// shutdownAside begins the drain and returns its end.
func (r *rig) shutdownAside() <-chan error {
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ended <- r.proxy.Shutdown(ctx)
	}()
	return ended
}

func TestCase249_GracefulShutdownInTwoSteps(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.noVerdicts = true })
		goOn := make(chan struct{})
		slow := func(c *uconn, q *message) bool {
			if !c.body(q) {
				return false
			}
			<-goOn
			return c.send(describe(q))
		}
		r.U[1].play(slow)
		h := r.dialH2(t, h2options{manual: true}) // the echo of the PING is the case's to send
		download := h.ask("GET", "/", true)
		upload := h.ask("POST", "/api", false)
		h.data(upload, false, "hel")
		r.U[1].awaitStarted(t, 1)
		r.U[2].awaitStarted(t, 1)

		ended := r.shutdownAside()
		h.until(t, "the first GOAWAY", func() bool { return len(h.goaways) == 1 })
		require.Equal(t, uint32(lastStream), h.goaways[0].last)
		require.Equal(t, http2.ErrCodeNo, h.goaways[0].code)
		between := h.ask("GET", "/api/v1", true)
		h.want(t, between, 200)
		h.until(t, "the second GOAWAY", func() bool { return len(h.goaways) == 2 })
		require.Equal(t, between, h.goaways[1].last)
		require.Less(t, h.goaways[1].at.Sub(h.goaways[0].at), time.Second)

		late := h.ask("GET", "/late", false)
		h.data(late, true, "ignored")
		h.data(upload, true, "lo")
		h.want(t, upload, 200)
		require.Equal(t, "hello", string(r.U[2].last(t).body))
		close(goOn)
		h.want(t, download, 200)
		h.gone(t, patience)
		require.Empty(t, h.stream(late).log, "not processed, and not reset either")
		for _, q := range r.allHeads() {
			require.NotEqual(t, "/late", q.target)
		}
		require.NoError(t, <-ended)
	})
}

func TestCase249_TheEchoOfThePingEndsTheFirstStep(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.noVerdicts = true })
		r.U[1].play(hang)
		h := r.dialH2(t)
		h.ask("GET", "/", true)
		r.U[1].awaitStarted(t, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.proxy.Shutdown(ctx) }()
		h.until(t, "both GOAWAYs", func() bool { return len(h.goaways) == 2 })
		require.Equal(t, uint32(1), h.goaways[1].last)
		h.rstStream(1, http2.ErrCodeCancel)
		h.gone(t, patience)
		require.NoError(t, <-ended)
	})
}

func TestCase250_IdleConnectionIsClosedWithinASecond(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		quickest := soon
		for _, manual := range []bool{false, true} {
			r := newRig(t, m, func(s *setup) { s.noVerdicts = true })
			h := r.dialH2(t, h2options{manual: manual})
			h.want(t, h.ask("GET", "/", true), 200)
			silent := r.dialRawH2(t)
			if m.tls {
				go silent.read()
			}
			begun := time.Now()
			ended := r.shutdownAside()
			last := h.gone(t, patience)
			quickest = min(quickest, time.Since(begun))
			require.Equal(t, goaway{1, http2.ErrCodeNo, last.at}, last)
			require.True(t, isEOF(h.ended), "%v", h.ended)
			if m.tls {
				silent.gone(t, patience)
			}
			require.NoError(t, <-ended)
		}
		require.Less(t, quickest, 3*time.Second) // one, and what a busy machine adds
	})
}

func TestCase252_WhatNeverEndsIsCut(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.noVerdicts = true })
		r.U[1].play(func(c *uconn, q *message) bool {
			return c.body(q) && c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n") && false
		})
		h := r.dialH2(t)
		id := h.ask("GET", "/", true)
		h.until(t, "the beginning", func() bool { return h.stream(id).n == 5 })
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		err := r.proxy.Shutdown(ctx)
		require.ErrorContains(t, err, "1 connection")
		h.gone(t, patience)
		require.False(t, h.stream(id).end, "a cut stream must not look whole")
		require.Equal(t, 1, r.log.count("cut"))
	})
}

// The fixed limit is short in these cases.
func shortHeads(s *setup) { s.head = shortHead }

func TestCase259_SlowBeginnings(t *testing.T) {
	t.Parallel()
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, script := range map[string]func(h *h2client){
		"half a preface":              func(h *h2client) { h.send(http2.ClientPreface[:10]) },
		"preface without SETTINGS":    func(h *h2client) { h.send(http2.ClientPreface) },
		"half a SETTINGS":             func(h *h2client) { h.send(http2.ClientPreface + settings[:5]) },
		"trickled preface":            func(h *h2client) { h.trickle(40*time.Millisecond, http2.ClientPreface+strings.Repeat(settings, 10)) },
		"HEADERS without END_HEADERS": func(h *h2client) { h.send(http2.ClientPreface + settings); h.unfinished(nil) },
		"half a HEADERS": func(h *h2client) {
			h.send(http2.ClientPreface + settings + "\x00\x00\x40\x01\x05\x00\x00\x00\x01\x82\x86")
		},
		"trickled CONTINUATION": func(h *h2client) {
			h.send(http2.ClientPreface + settings)
			h.unfinished(func() bool {
				pause(30 * time.Millisecond)
				h.write(func() error { return h.fr.WriteContinuation(1, false, h.block("x", "1")) })
				return h.writeErr == nil
			})
		},
		"trickled frame heads": func(h *h2client) {
			h.send(http2.ClientPreface + settings)
			h.trickle(150*time.Millisecond, "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678")
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachH2Mode(t, func(t *testing.T, m mode) {
				r := newRig(t, m, shortHeads)
				h := r.dialRawH2(t)
				begun := time.Now()
				go script(h)
				h.read()
				require.Less(t, time.Since(begun), soon)
				require.GreaterOrEqual(t, time.Since(begun), shortHead-50*time.Millisecond)
				require.Zero(t, r.heads())
				h.rst()
			})
		})
	}
}

// unfinished begins a header block and goes on as long as more says so.
func (h *h2client) unfinished(more func() bool) {
	h.write(func() error {
		return h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h.block(pseudo("GET", "/")...), EndStream: true})
	})
	for more != nil && more() {
	}
}

func TestCase259_IdleConnectionsEnd(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.ClientIdleTimeout = clientIdle; s.cfg.UpstreamTimeout = patience })
		nothing := r.dialRawH2(t)
		begun := time.Now()
		nothing.read()
		require.Less(t, time.Since(begun), soon)
		h := r.dialH2(t)
		require.Equal(t, http2.ErrCodeNo, h.gone(t, patience).code)
		require.True(t, isEOF(h.ended), "%v", h.ended)

		h = r.dialH2(t)
		answered := make(chan time.Time, 1)
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			pause(3 * clientIdle) // a stream under way is no idleness
			answered <- time.Now()
			return c.send(describe(q))
		})
		h.want(t, h.ask("GET", "/", true), 200)
		h.gone(t, patience)
		require.GreaterOrEqual(t, time.Since(<-answered), clientIdle*9/10)
	})
}

func TestCase260_SlowBodies(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2, func(s *setup) { s.cfg.BodyIdleTimeout = bodyIdle })
		require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
			h := r.dialH2(t)
			heads := len(r.U[1].started())
			id := h.ask("POST", "/", false)
			h.data(id, false, "hel")
			q := r.U[1].awaitStarted(t, heads+1)
			h.want(t, id, 400)
			r.U[1].gone(t, q.conn)
			h.want(t, h.ask("GET", "/api", true), 200)
		}))
		h := r.dialH2(t, h2options{settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 3}}, manual: true})
		r.U[2].play(reply(ok("hello")))
		id := h.ask("GET", "/api", true)
		h.isReset(t, id)
		require.Equal(t, int64(3), h.stream(id).n)
		r.U[2].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 5\r\n\r\nhe"))
		id = h.ask("GET", "/api", true)
		h.isReset(t, id)
	})
}
