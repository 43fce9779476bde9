package conformance

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const notNow = "HTTP/1.1 503 Not Now\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"

// gate holds a script back until it is opened, at the latest at the end of the test.
func gate(t *testing.T) (opened chan struct{}, open func()) {
	opened = make(chan struct{})
	open = sync.OnceFunc(func() { close(opened) })
	t.Cleanup(open)
	return opened, open
}

// A 503 opens the circuit and leaves its connection in the pool, so that the probe takes a connection
// that was used before and may have to be sent again.
func TestCase150_RetriedProbeStaysOneProbe(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1, oneLoop)
		u, c := r.U[1], r.dial(t)
		for _, good := range []bool{true, false} {
			u.play(reply(notNow))
			require.Equal(t, 503, c.do(t, request{}).status)
			require.Equal(t, 1, r.state(u))
			pause(3 * time.Millisecond) // the cooldown is one
			opened, probes, heads := r.transitions(u, "open"), r.transitions(u, "half_open"), len(u.started())
			released, release := gate(t)
			u.play(takeAndLeave, func(c *uconn, q *message) bool {
				<-released
				if good {
					return echo(c, q)
				}
				return takeAndLeave(c, q)
			})
			probe := request{nonce: nonce()}
			c.send(probe.String())
			again := u.awaitStarted(t, heads+2)
			require.Equal(t, probe.nonce, u.started()[heads].get("X-Nonce"))
			require.Equal(t, probe.nonce, again.get("X-Nonce"), "the same request, once more")
			require.Equal(t, 2, r.state(u))
			other := r.dial(t)
			own(t, other.do(t, request{}), 503, "upstream unavailable")
			other.close()
			release()
			if good {
				require.Equal(t, probe.nonce, c.want(t, "GET", 200).get("X-Nonce"))
				require.Zero(t, r.state(u))
				require.Equal(t, opened, r.transitions(u, "open"))
			} else {
				own(t, c.must(t, "GET"), 502, "bad gateway")
				require.Equal(t, opened+1, r.transitions(u, "open"), "two attempts are one failure")
			}
			require.Equal(t, probes+1, r.transitions(u, "half_open"))
			require.Len(t, u.started(), heads+2)
			r.closeCircuit(t)
		}
	})
}

// The circuit opens while a request is out on a connection of the pool: whatever becomes of it and its
// retry, it was admitted before and counts no more.
func TestCase217_RetryWhileOpenLeavesNoResult(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		for name, second := range map[string]handler{"served": echo, "failed": takeAndLeave} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, m, stayOpen, oneLoop)
				u, c := r.U[1], r.dial(t)
				require.Equal(t, 200, c.do(t, request{}).status)
				released, release := gate(t)
				u.play(func(c *uconn, q *message) bool { <-released; return takeAndLeave(c, q) })
				c.send(request{}.String())
				require.Equal(t, u.started()[0].conn, u.awaitStarted(t, 2).conn, "on the pooled connection")
				r.fail(t, "/", u)
				require.Equal(t, 1, r.state(u))
				u.play(second)
				release()
				require.Contains(t, []int{200, 502, 503}, c.must(t, "GET").status)
				require.Equal(t, 1, r.state(u), "a result from before the trip")
				require.Equal(t, 1, r.transitions(u, "open"))
				require.Zero(t, r.transitions(u, "closed")+r.transitions(u, "half_open"))
				r.refusedByCircuit(t, "/")
			})
		}
	})
}
