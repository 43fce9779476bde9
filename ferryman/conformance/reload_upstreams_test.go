package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// atOnce is what a second of an idle machine may become on a busy one.
const atOnce = 5 * time.Second

func TestCase241_ChangedAddress(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		old, fresh := r.U[1], r.U[5]
		released, release := gate(t)
		old.play(func(c *uconn, q *message) bool { <-released; return echo(c, q) })
		busy := r.dial(t)
		busy.send(request{}.String())
		atWork := old.awaitStarted(t, 1).conn
		kept := r.dial(t)
		require.Equal(t, 200, kept.do(t, request{}).status)
		idle := old.last(t).conn
		require.NotEqual(t, atWork, idle)

		r.reload(t, func(c *config.Config) { c.Routes[0].Upstream = fresh.addr })
		old.goneWithin(t, idle, atOnce)
		for range 5 {
			require.Equal(t, fresh.name, kept.do(t, request{}).get("X-U"))
			require.Equal(t, fresh.name, r.get(t, "/").get("X-U"))
		}
		select {
		case <-old.connections()[atWork].ended:
			require.Fail(t, "a busy connection was cut")
		default:
		}
		release()
		require.Equal(t, old.name, busy.want(t, "GET", 200).get("X-U"))
		old.goneWithin(t, atWork, atOnce)
		require.Len(t, old.started(), 2)
	})
}

func TestCase242_LateResultsOfARemovedUpstream(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		root := r.cfg.Routes[0]
		well, wellEnds := r.slow(t)
		bad, badEnds := r.slow(t)
		left, leftEnds := r.slow(t)
		r.reload(t, func(c *config.Config) { c.Routes = c.Routes[1:] })
		require.Empty(t, r.seriesOf(r.U[1].addr))
		wellEnds <- true
		well.want(t, "GET", 200)
		badEnds <- false
		own(t, bad.must(t, "GET"), 502, "bad gateway")
		left.close()
		leftEnds <- true
		for i := range r.U[1].connections() {
			r.U[1].gone(t, i)
		}
		require.Empty(t, r.seriesOf(r.U[1].addr), "a late result must not bring them back")

		r.reload(t, func(c *config.Config) { c.Routes = append(c.Routes, root) })
		require.Zero(t, r.state(r.U[1]), "nor follow the address into its next life")
		require.Equal(t, 200, r.get(t, "/").status)
		require.Zero(t, r.transitions(r.U[1], "open"))
	})
}
