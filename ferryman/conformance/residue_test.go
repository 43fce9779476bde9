package conformance

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// TestCase281_ThreeTimesTheSame has something of each area in a round. At the end of a round the rig
// has done its own accounts; here the process does: the second and the third leave what the first left.
func TestCase281_ThreeTimesTheSame(t *testing.T) {
	round := func() (goroutines, files int, memory uint64) {
		for _, m := range modes() {
			t.Run(m.name, func(t *testing.T) { everyArea(t, newRig(t, m, threshold1)) })
		}
		eventually(t, func() bool {
			goroutines, files = runtime.NumGoroutine(), descriptors()
			pause(quiet)
			return runtime.NumGoroutine() == goroutines && descriptors() == files
		}, "the process does not come to rest")
		return goroutines, files, liveHeap()
	}
	goroutines, files, memory := round()
	for range 2 {
		g, f, b := round()
		require.LessOrEqual(t, g, goroutines+4, "goroutines")
		require.LessOrEqual(t, f, files+4, "descriptors")
		require.Less(t, b, memory+4<<20, "memory")
	}
}

func everyArea(t *testing.T, r *rig) {
	u := r.U[1]
	u.play(reply(earlyHints+ok("hinted")), replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\n\r\nuntil the end"))
	require.Equal(t, "hinted", string(r.get(t, "/").body))
	require.Equal(t, "until the end", string(r.get(t, "/").body))

	r.get(t, "/") // request line, fields
	r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n")
	r.refusesBody(t, chunked("5\r\nhello\r\nZ\r\n")) // whose head the upstream may see much later
	r.closeCircuit(t)
	r.serves(t, request{m: "POST", chunks: []string{"hello"}}.String())

	r.U[4].play(switches(func(c *uconn) { c.fin() })) // upgrade
	tunnel := r.dial(t)
	require.Equal(t, 101, tunnel.do(t, request{path: "/ws", fields: upgradeLines}).status)
	tunnel.close()

	c := r.dial(t) // pool, retry
	require.Equal(t, 200, c.do(t, request{}).status)
	u.play(takeAndLeave)
	require.Equal(t, 200, c.do(t, request{}).status)

	u.play(hang) // client that leaves
	left, heads := r.dial(t), len(u.started())
	left.send(request{}.String())
	u.awaitStarted(t, heads+1)
	left.close()

	h := r.dialH2(t)
	r.U[2].play(hang)
	reset := h.ask("POST", "/api", false)
	r.U[2].awaitStarted(t, 1)
	h.rstStream(reset, 8)
	h.alive(t)

	r.fail(t, "/api/v1", r.U[3]) // breaker
	r.heal(t, "/api/v1", r.U[3])

	r.reload(t, func(c *config.Config) { c.Routes = c.Routes[1:] })
	own(t, c.do(t, request{}), 404, "no route")
	r.reload(t, func(c *config.Config) { c.Routes = append(c.Routes, config.Route{Prefix: "/", Upstream: u.addr}) })
	require.Equal(t, 200, c.do(t, request{}).status)

	r.during(t, func(c *config.Config) { c.HealthInterval, c.HealthTimeout = checkInterval, checkTimeout }, func() {
		eventually(t, func() bool { return len(u.checked()) > 0 }, "no check")
	})
}
