package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// A process that was paused (a debugger, a suspended container, a machine too busy) finds its clocks run out and
// what came before that in its sockets. What came counts.

const pausedFor = 1200 * time.Millisecond

// outlasted are limits that a pause outlasts.
func outlasted(up string) processSpec {
	c := config.Default()
	c.HealthInterval, c.HealthTimeout = time.Hour, time.Second
	c.UpstreamTimeout, c.ConnectTimeout, c.ClientIdleTimeout = 500*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond
	c.FailureThreshold = 1
	c.Routes = []config.Route{{Prefix: "/", Upstream: up}}
	return processSpec{Config: c, Head: 500 * time.Millisecond}
}

func TestCase321_AnswerThatCameDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newUpstream(t, "U")
		t.Cleanup(u.close)
		p := startProcess(t, m, outlasted(u.addr))
		arrived, answer := make(chan struct{}), make(chan struct{})
		u.playAlways(func(c *uconn, q *message) bool {
			if !c.body(q) {
				return false
			}
			arrived <- struct{}{}
			<-answer
			return c.send(describe(q))
		})
		c := p.dial(t)
		for range scaled(3) {
			c.send(request{}.String())
			<-arrived
			p.paused(func() {
				answer <- struct{}{}
				pause(pausedFor)
			})
			require.Equal(t, 200, c.must(t, "GET").status)
		}
	})
}
