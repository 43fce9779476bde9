package conformance

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

func TestCase238_RequestsInFlightFinishOnTheOldUpstream(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		release := make(chan struct{})
		slow := func(c *uconn, q *message) bool { <-release; return echo(c, q) }
		stream := func(c *uconn, q *message) bool {
			c.body(q)
			c.send("HTTP/1.1 200 OK\r\nX-U: U1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			<-release
			return c.send("5\r\nworld\r\n0\r\n\r\n")
		}
		r.U[1].play(slow, stream, slow)
		get, events, upload := r.dial(t), r.dial(t), r.dial(t)
		get.send(request{}.String())
		r.U[1].awaitStarted(t, 1)
		events.send(request{}.String())
		r.U[1].awaitStarted(t, 2)
		upload.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
		r.U[1].awaitStarted(t, 3)
		r.reload(t, func(c *config.Config) { c.Routes[0].Upstream = r.U[2].addr })
		require.Equal(t, "U2", r.get(t, "/").get("X-U"))
		upload.send("world")
		close(release)
		require.Equal(t, "U1", get.want(t, "GET", 200).get("X-U"))
		require.Equal(t, "helloworld", string(events.want(t, "GET", 200).body))
		require.Equal(t, "U1", upload.want(t, "POST", 200).get("X-U"))
		require.Equal(t, "U2", get.do(t, request{}).get("X-U"), "239: a kept-alive connection sees the new routes")
		for i := range r.U[1].connections() { // 241
			r.U[1].gone(t, i)
		}
	})
}

func TestCase240_UnchangedUpstreamKeepsItsConnections(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, oneLoop)
		c := r.dial(t)
		require.Equal(t, 200, c.do(t, request{}).status)
		for range 10 {
			r.reload(t, func(c *config.Config) {
				c.UpstreamTimeout += time.Millisecond
				slices.Reverse(c.Routes)
			})
			require.Equal(t, 200, c.do(t, request{}).status)
		}
		require.Len(t, r.U[1].connections(), 1)
	})
}

// Cases 241 and 242 for a route that is gone.
func TestCase241And242_OldConnectionsEnd(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks)
		r.get(t, "/")
		eventually(t, func() bool { return len(r.U[1].checked()) > 0 }, "no check")
		idle := r.U[1].last(t).conn
		addr := r.U[1].addr
		r.reload(t, func(c *config.Config) { c.Routes = c.Routes[1:] })
		start := time.Now()
		r.U[1].gone(t, idle)
		require.Less(t, time.Since(start), soon)
		require.Empty(t, r.seriesOf(addr))
		n := len(r.U[1].checked())
		pause(4 * checkInterval)
		require.LessOrEqual(t, len(r.U[1].checked()), n+1, "checks go on")
	})
}

func TestCase244_ReloadDuringTheDrainIsHarmless(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		release := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool { <-release; return echo(c, q) })
		c := r.dial(t)
		c.send(request{}.String())
		r.U[1].awaitStarted(t, 1)
		done := r.drained(patience)
		r.awaitDraining(t)
		conf := r.cfg
		conf.UpstreamTimeout += time.Second
		_ = r.proxy.Reload(conf)
		require.Equal(t, 503, r.status("/readyz"))
		close(release)
		c.want(t, "GET", 200)
		c.close()
		require.NoError(t, <-done)
		_ = r.proxy.Reload(conf)
	})
}

// TestCase244_StormOfReloads changes everything that can be changed under load. No request may fail, for
// the route that is asked is in every one of the tables.
func TestCase244_StormOfReloads(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var served atomic.Int64
		for range 4 {
			c := r.dial(t)
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					c.send(request{path: "/api/x"}.String())
					resp, err := c.response("GET")
					if !assert.NoError(t, err) || !assert.Equal(t, 200, resp.status, "%q", resp.body) {
						return
					}
					served.Add(1)
				}
			})
		}
		base := r.cfg
		for i := range scaled(60) {
			r.reload(t, func(c *config.Config) {
				c.HealthInterval += time.Duration(i%5) * time.Millisecond
				c.DefaultCooldown += time.Duration(i) * time.Millisecond
				c.UpstreamTimeout += time.Millisecond
				switch i % 3 {
				case 0:
					c.Routes = slices.Clone(base.Routes[1:3])
				case 1:
					c.Routes = slices.Clone(base.Routes)
				case 2:
					c.Routes[0].StripPrefix = !c.Routes[0].StripPrefix && c.Routes[0].Prefix != "/api"
				}
			})
			n := served.Load()
			within(50*time.Millisecond, func() bool { return served.Load() > n })
		}
		close(stop)
		wg.Wait()
		require.Positive(t, served.Load())
	})
}

func TestCase245_ManyReloadsLeaveNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.get(t, "/")
		base := r.cfg
		before := len(r.metrics())
		for i := range scaled(100) {
			r.reload(t, func(c *config.Config) {
				c.Routes = slices.Clone(base.Routes)
				if i%2 == 0 {
					c.Routes = c.Routes[1:]
				}
			})
		}
		require.Equal(t, 200, r.get(t, "/").status)
		require.Len(t, r.metrics(), before)
		require.LessOrEqual(t, r.goroutines(), r.atRest())
	})
}
