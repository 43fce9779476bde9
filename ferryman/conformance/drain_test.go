package conformance

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drained starts Shutdown; the error arrives on the channel when it is over.
func (r *rig) drained(limit time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		done <- r.proxy.Shutdown(ctx)
	}()
	return done
}

// status asks the metrics handler.
func (r *rig) status(path string) int {
	rec := httptest.NewRecorder()
	r.proxy.MetricsHandler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec.Code
}

func (r *rig) awaitDraining(t testing.TB) {
	t.Helper()
	eventually(t, func() bool { return r.status("/readyz") == 503 }, "the drain does not begin")
}

func TestCase246_IdleConnectionsAreClosedGently(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		var clients []*client
		for i := range 20 {
			c := r.dial(t)
			if i%2 == 0 {
				require.Equal(t, 200, c.do(t, request{}).status)
			}
			clients = append(clients, c)
		}
		// What waits to be accepted when the listener closes is the kernel's to reset.
		eventually(t, func() bool { return r.sum("ferryman_connections") == 20 }, "not all are accepted")
		start := time.Now()
		done := r.drained(patience)
		for i, c := range clients {
			if i%2 == 1 && m.tls {
				// 248: without a byte, its handshake may not be over yet on the other side.
				_, err := c.end()
				require.True(t, err == nil || isReset(err), "%v", err)
				continue
			}
			c.closedByPeer(t)
		}
		require.Less(t, time.Since(start), soon)
		for _, c := range clients {
			c.close()
		}
		require.NoError(t, <-done)
	})
}

func TestCase246_RequestAtTheMomentOfTheDrain(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		g := rand.New(rand.NewPCG(246, uint64(len(m.name))))
		for range scaled(8) {
			r := newRig(t, m)
			var clients []*client
			for range 8 {
				c := r.dial(t)
				require.Equal(t, 200, c.do(t, request{}).status)
				clients = append(clients, c)
			}
			before := r.whole()
			var wg sync.WaitGroup
			var served atomic.Int32
			delays := make([]time.Duration, len(clients))
			for i := range delays {
				delays[i] = time.Duration(g.IntN(1000)) * time.Microsecond
			}
			done := r.drained(patience)
			for i, c := range clients {
				wg.Go(func() {
					defer c.close()
					pause(delays[i])
					q := request{nonce: nonce()}
					c.send(q.String())
					resp, err := c.response("GET")
					if err == nil {
						assert.Equal(t, 200, resp.status)
						assert.Equal(t, q.nonce, resp.get("X-Nonce"))
						served.Add(1)
						return
					}
					// Not served at all: nothing of a response, and nothing at the upstream.
					assert.True(t, resp == nil && (err == io.EOF || isReset(err) || errors.Is(err, net.ErrClosed)), "%v", err)
				})
			}
			wg.Wait()
			require.NoError(t, <-done)
			require.Equal(t, before+int(served.Load()), r.whole(), "what reached the upstream must have been answered")
		}
	})
}

func TestCase247_RequestInFlightCompletes(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		release := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool { c.body(q); <-release; return c.send(describe(q)) })
		c := r.dial(t)
		q := request{nonce: nonce()}
		c.send(q.String() + smuggled) // no second request is begun
		r.U[1].awaitStarted(t, 1)
		done := r.drained(patience)
		r.awaitDraining(t)
		close(release)
		resp := c.want(t, "GET", 200)
		require.Equal(t, q.nonce, resp.get("X-Nonce"))
		require.Equal(t, []string{"close"}, resp.values("Connection"))
		c.closedByPeer(t)
		c.close()
		require.NoError(t, <-done)
		require.Equal(t, 1, r.heads())
	})
}

func TestCase247_ResponseThatWasBegunCompletes(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		release := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			c.send("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 10\r\n\r\nhello")
			<-release
			return c.send("world")
		})
		c := r.dial(t)
		c.send(request{}.String())
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		_, err := c.w.br.Peek(20)
		require.NoError(t, err)
		done := r.drained(patience)
		r.awaitDraining(t)
		close(release)
		require.Equal(t, "helloworld", string(c.want(t, "GET", 200).body))
		c.closedByPeer(t)
		c.close()
		require.NoError(t, <-done)
	})
}

func TestCase247_UploadInFlightCompletes(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		n := nonce()
		c.send("POST / HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\nContent-Length: 10\r\n\r\nhello")
		r.U[1].awaitStarted(t, 1)
		done := r.drained(patience)
		r.awaitDraining(t)
		c.send("world")
		resp := c.want(t, "POST", 200)
		require.Equal(t, n, resp.get("X-Nonce"))
		require.Equal(t, []string{"close"}, resp.values("Connection"))
		c.closedByPeer(t)
		c.close()
		require.NoError(t, <-done)
		require.Equal(t, "helloworld", string(r.U[1].last(t).body))
	})
}

func TestCase248_HalfAHeadDoesNotHoldTheDrain(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.head = shortHead })
		c := r.dial(t)
		c.send("GET / HTTP/1.1\r\nHo")
		start := time.Now()
		require.NoError(t, <-r.drained(patience))
		require.Less(t, time.Since(start), soon)
		require.Zero(t, r.heads())
	})
}

func TestCase251_NewConnectionsAreRefused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		require.Equal(t, 200, r.status("/readyz"))
		release := make(chan struct{})
		r.U[1].play(func(c *uconn, q *message) bool { c.body(q); <-release; return c.send(describe(q)) })
		c := r.dial(t)
		c.send(request{}.String())
		r.U[1].awaitStarted(t, 1)
		done := r.drained(patience)
		r.awaitDraining(t)
		eventually(t, func() bool {
			nc, err := net.DialTimeout("tcp", r.addr, patience)
			if err == nil {
				nc.Close()
			}
			return errors.Is(err, syscall.ECONNREFUSED)
		}, "the listener stays open")
		require.Equal(t, 503, r.status("/readyz"))
		require.Equal(t, 200, r.status("/healthz"))
		require.Equal(t, 200, r.status("/metrics"))
		close(release)
		c.want(t, "GET", 200)
		c.close()
		require.NoError(t, <-done)
		require.Equal(t, 200, r.status("/healthz"), "the metrics handler outlives the drain")
	})
}

// Cases 252 and 255.
func TestCase252And255_WhatNeverEndsIsCut(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.noVerdicts = true })
		r.U[1].play(replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 10\r\n\r\nhello"), replyThenHold("HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), hang)
		r.U[4].play(switches(func(c *uconn) { c.send("tunnel") }))
		var clients []*client
		for i, q := range []request{{}, {}, {}, {path: "/ws", fields: upgradeLines}} {
			c := r.dial(t)
			c.send(q.String())
			clients = append(clients, c)
			if i < 3 {
				r.U[1].awaitStarted(t, i+1)
			} else {
				require.Equal(t, 101, c.must(t, "GET").status)
				b := make([]byte, 6)
				_, err := io.ReadFull(c.w.br, b)
				require.NoError(t, err)
			}
		}
		start := time.Now()
		err := <-r.drained(upstreamTimeout)
		require.Error(t, err)
		require.Contains(t, err.Error(), "4", "the error says how many were cut")
		require.GreaterOrEqual(t, time.Since(start), upstreamTimeout*9/10)
		require.Less(t, time.Since(start), soon)
		clients[0].truncated(t, "hello")
		clients[1].truncated(t, "hello")
		b, _ := clients[2].end()
		require.False(t, strings.Contains(string(b), " 200 "), "%q", b)
		_, _ = clients[3].end()
		for i := range 3 {
			r.U[1].gone(t, i)
		}
		r.U[4].gone(t, 0)
	})
}

func TestCase253_NothingToDrain(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		start := time.Now()
		require.NoError(t, <-r.drained(patience))
		require.Less(t, time.Since(start), soon)
		require.NoError(t, <-r.drained(patience), "a second shutdown is harmless")
	})
}

func TestCase254_ChecksAndPoolsEndWithTheDrain(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks)
		for _, path := range []string{"/", "/api"} {
			r.get(t, path)
		}
		eventually(t, func() bool { return len(r.U[1].checked()) > 1 }, "no checks")
		require.NoError(t, <-r.drained(patience))
		for _, u := range r.U[1:3] {
			for i := range u.connections() {
				u.gone(t, i)
			}
		}
		n := len(r.U[1].checked())
		pause(4 * checkInterval)
		require.LessOrEqual(t, len(r.U[1].checked()), n+1, "checks go on")
	})
}

func TestCase209_DrainWhileAProbeIsOut(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		probe, release := r.slow(t)
		require.Equal(t, 2, r.state(r.U[1]))
		done := r.drained(patience)
		r.awaitDraining(t)
		release <- true
		require.Equal(t, 200, probe.must(t, "GET").status)
		probe.close()
		require.NoError(t, <-done)
		require.Zero(t, r.state(r.U[1]))
	})
}

// TestCase256_RollingRestart replaces a proxy under load by another on the next address. Clients honour
// close and send an idempotent request again that was not answered at all, as RFC 9110 9.2.2 lets them.
func TestCase256_RollingRestart(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		var current atomic.Pointer[rig]
		rigs := []*rig{newRig(t, m), newRig(t, m), newRig(t, m)}
		current.Store(rigs[0])
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var served atomic.Int64
		for i := range 8 {
			wg.Go(func() {
				roll(t, &current, stop, &served, i%2 == 1)
			})
		}
		for _, next := range rigs[1:] {
			n := served.Load()
			eventually(t, func() bool { return served.Load() > n+100 }, "no load")
			old := current.Swap(next)
			require.NoError(t, <-old.drained(patience))
		}
		close(stop)
		wg.Wait()
		seen := map[string]int{}
		for _, r := range rigs {
			for _, q := range r.U[1].started() {
				if q.method == "POST" {
					seen[q.get("X-Nonce")]++
					require.Equal(t, 1, seen[q.get("X-Nonce")], "a POST was delivered twice")
				}
			}
		}
	})
}

// roll sends requests until told to stop, to whatever proxy is the current one.
func roll(t *testing.T, current *atomic.Pointer[rig], stop chan struct{}, served *atomic.Int64, post bool) {
	var c *client
	for n := 0; ; n++ {
		select {
		case <-stop:
			if c != nil {
				c.close()
			}
			return
		default:
		}
		q := request{nonce: nonce()}
		if post {
			q.m, q.body = "POST", "hello"
		}
		for attempt := 0; ; attempt++ {
			fresh := c == nil
			if fresh {
				var err error
				if c, err = current.Load().tryDial(clientTLS, 0); err != nil {
					c = nil
					if !assert.Less(t, attempt, 5, "no connection: %v", err) {
						return
					}
					continue
				}
			}
			c.send(q.String())
			resp, err := c.response(q.method())
			if err == nil {
				assert.Equal(t, 200, resp.status)
				served.Add(1)
				if resp.get("Connection") == "close" {
					c.close()
					c = nil
				}
				break
			}
			c.close()
			c = nil
			if post {
				break // nobody may send it again
			}
			if !assert.Less(t, attempt, 5, "an idempotent request fails: %v", err) {
				return
			}
		}
	}
}
