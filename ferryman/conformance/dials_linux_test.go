package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// A browser that opens a page of some hundred images must not flood its upstream with as many SYNs: where the backlog is
// full they are lost, dials time out, and the circuit opens for everybody.
func TestCase297_DialsAreBoundedAndTheOthersWait(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const many, backlog, most = 240, 100, 64
		ln := listenOn(t, loopback4, 0, backlog)
		u := &upstream{name: "U", addr: ln.Addr().String(), ln: ln, recordMax: 4 << 20, always: echo}
		t.Cleanup(u.close)
		r := newRig(t, m, func(s *setup) {
			s.cfg.FailureThreshold = 1
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/slow", Upstream: u.addr})
		})
		h := r.dialH2(t)
		var ids []uint32
		for range many {
			ids = append(ids, h.ask("GET", "/slow", true))
		}
		h.want(t, h.ask("GET", "/", true), 200) // behind all these
		eventually(t, func() bool { return sockets(t, u.addr, established) >= backlog }, "it is not busy")
		pause(quiet)
		require.LessOrEqual(t, sockets(t, u.addr, synSent), most)
		u.coroutines.Add(1)
		go u.accept(ln) // it is back
		for _, id := range ids {
			h.want(t, id, 200)
		}
		require.Zero(t, r.transitions(u, "open"))
	})
}

func TestCase297_ClientThatLeavesEndsItsWaitAtOnce(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const many = 100
		r := newRig(t, m, func(s *setup) { s.noVerdicts = true }) // dials go on, for others, and may take as long as patience
		h1, h2 := r.dial(t), r.dialH2(t)
		h1.send(request{path: "/black"}.String())
		var ids []uint32
		for range many {
			ids = append(ids, h2.ask("GET", "/black", true))
		}
		h2.want(t, h2.ask("GET", "/", true), 200) // behind all these
		for _, id := range ids {
			h2.rstStream(id, http2.ErrCodeCancel)
		}
		h1.rst()
		require.True(t, within(patience/3, func() bool { return r.sum("ferryman_client_aborts_total", `route="/black"`) == many+1 }),
			"somebody waits for a dial that nobody needs")
		require.Zero(t, r.sum("ferryman_circuit_transitions_total", `to="open"`))
	})
}

// Whoever waits for a dial when the circuit opens hears at once, not when the dial's time is over.
func TestCase297_WaitForADialEndsWhenTheCircuitOpens(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		ln := listenOn(t, loopback4, 0, 0)
		r := newRig(t, m, func(s *setup) {
			s.noVerdicts = true // dials go on, and may take as long as patience
			s.cfg.FailureThreshold = 1
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/full", Upstream: ln.Addr().String()})
		})
		served := r.dial(t)
		served.send(request{path: "/full"}.String())
		up, err := ln.Accept()
		require.NoError(t, err)
		defer up.Close()
		fill(t, ln.Addr().String())
		h1, h2 := r.dial(t), r.dialH2(t)
		h1.send(request{path: "/full"}.String())
		var ids []uint32
		for range 100 {
			ids = append(ids, h2.ask("GET", "/full", true))
		}
		h2.want(t, h2.ask("GET", "/", true), 200) // behind all these
		begun := time.Now()
		require.NoError(t, up.Close()) // the circuit opens
		served.want(t, "GET", 502)
		own(t, h1.want(t, "GET", 503), 503, "upstream unavailable")
		for _, id := range ids {
			require.NotEmpty(t, h2.want(t, id, 503).final().get("retry-after"))
		}
		require.Less(t, time.Since(begun), patience/3)
		require.InDelta(t, 1, r.sum("ferryman_circuit_transitions_total", `to="open"`), 0)
	})
}
