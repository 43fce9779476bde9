package upstream_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetire_ClosesWhatIsIdleAndPoolsNothingMore(t *testing.T) { // conformance 241, 242
	forEachEngine(t, func(t *testing.T, r *rig) {
		var idle, busy []conn
		for _, ex := range r.ex {
			idle = append(idle, r.dial(ex), r.dial(ex))
			busy = append(busy, r.dial(ex))
			r.put(ex, idle[len(idle)-1].Conn)
			r.put(ex, idle[len(idle)-2].Conn)
		}
		r.counts(len(busy), len(idle))
		r.up.Retire()
		for _, c := range idle {
			c.closed(t)
		}
		r.counts(len(busy), 0)
		for i, ex := range r.ex {
			busy[i].open(t)
			r.put(ex, busy[i].Conn)
			busy[i].closed(t)
			require.Nil(t, r.idle(ex, false))
		}
		r.counts(0, 0)

		late := r.dial(r.ex[0]) // an exchange that began before
		r.put(r.ex[0], late.Conn)
		late.closed(t)
		r.counts(0, 0)
	})
}

func TestPrune_ClosesTheOldAndTheDead(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		for _, ex := range r.ex {
			quiet, dead := r.dial(ex), r.dial(ex)
			r.put(ex, quiet.Conn)
			r.put(ex, dead.Conn)
			require.NoError(t, dead.far.CloseWrite())
			r.until(ex, "the FIN is noticed", func() bool { return !dead.SeemsQuiet() })
			r.up.Prune(time.Now().Add(-time.Hour))
			dead.closed(t)
			quiet.open(t)
			r.counts(0, 1)
			r.up.Prune(time.Now().Add(time.Hour))
			quiet.closed(t)
			r.counts(0, 0)
		}
	})
}
