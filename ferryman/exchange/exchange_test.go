package exchange_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/breaker"
	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/route"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

// client is a Frontend of no protocol: it keeps what it gets.
type client struct {
	gone       bool
	status     int // of the response, or of ferryman's own
	own        bool
	retryAfter time.Duration
	body       []byte
	space      [1000]byte
	ended      bool
}

func (c *client) AppendHead(dst []byte, _ *exchange.Exchange) []byte {
	return append(dst, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"...)
}
func (c *client) Reply(o *exchange.Outcome, retryAfter time.Duration) {
	c.own, c.status, c.retryAfter = true, o.Status, retryAfter
}
func (c *client) Begin(e *exchange.Exchange) error { c.status = e.Response.Status; return nil }
func (c *client) Free() ([]byte, error)            { return c.space[:], nil }
func (c *client) Written(n int)                    { c.body = append(c.body, c.space[:n]...) }
func (c *client) End(*h1.Head) error               { c.ended = true; return nil }
func (c *client) Gone() bool                       { return c.gone }
func (c *client) Stow(*exchange.Exchange)          {}
func (c *client) Interim(*h1.Response) error       { return nil }
func (c *client) Flush() error                     { return nil }
func (c *client) Guard(netloop.Aborter)            {}
func (c *client) StopBody()                        {}
func (c *client) Hijack() (net.Conn, netloop.Conn, *h1.Reader) {
	panic("nobody asks for a tunnel")
}

// counted counts, and logs.
type counted struct {
	answered []int
	aborted  int
	circuits []string
	failures []string
}

func (c *counted) Head(time.Duration)  {}
func (c *counted) Answered(status int) { c.answered = append(c.answered, status) }
func (c *counted) ClientAborted()      { c.aborted++ }
func (c *counted) CircuitChanged(u *upstream.Upstream, cause string, _ error) {
	c.circuits = append(c.circuits, u.Breaker().State().String()+": "+cause)
}
func (c *counted) RequestFailed(_ *upstream.Upstream, status int, cause string, err error) {
	c.failures = append(c.failures, fmt.Sprint(status, " ", cause, ": ", errors.Is(err, os.ErrDeadlineExceeded)))
}

// rig is a proxy without a frontend: one route, /up, to an upstream that answers each connection with the same bytes, and
// then closes it unless it stays.
type rig struct {
	shared            exchange.Shared
	ex                *netloop.GoroutineEngine
	route             *exchange.Route
	unrouted, counted counted
}

func newRig(t *testing.T, answer string, stays ...bool) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 1000))
				c.Write([]byte(answer))
				if len(stays) > 0 {
					c.Read(make([]byte, 1)) // the end
				}
			}()
		}
	}()
	r := &rig{ex: netloop.Goroutines(netloop.Options{})}
	t.Cleanup(func() { require.NoError(t, r.ex.Close()) })
	u := upstream.New(l.Addr().String(), r.ex.Executors(), breaker.Config{Threshold: 2, Cooldown: time.Minute}, dial.New(dial.Options{}))
	r.route = &exchange.Route{Upstream: u, Counters: &r.counted}
	routes, err := route.Build([]route.Entry[*exchange.Route]{{Prefix: "/up", Value: r.route}})
	require.NoError(t, err)
	r.shared.Unrouted, r.shared.Observer = &r.unrouted, &r.counted
	r.shared.Snapshot.Store(&exchange.Snapshot{Routes: routes, ConnectTimeout: 10 * time.Second, UpstreamTimeout: 10 * time.Second})
	return r
}

func (r *rig) run(c *client, q exchange.Request) (complete bool) {
	var e exchange.Exchange
	e.Reset(&r.shared, r.ex, r.shared.Snapshot.Load(), c, nil)
	q.Bodiless = true
	e.Request = q
	e.Run()
	return e.Complete()
}

func TestRun_RelaysWhatTheUpstreamAnswers(t *testing.T) {
	r := newRig(t, "HTTP/1.1 203 Fine\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
	var c client
	require.True(t, r.run(&c, exchange.Request{Path: []byte("/up/x")}))
	require.Equal(t, 203, c.status)
	require.False(t, c.own)
	require.Equal(t, "hello", string(c.body))
	require.True(t, c.ended)
	require.Equal(t, []int{203}, r.counted.answered)
	inUse, idle := r.route.Upstream.Connections()
	require.Zero(t, inUse+idle, "it was to be closed")
}

func TestRun_EndsEarlyWithOneOfTheOutcomes(t *testing.T) {
	up := []byte("/up")
	for _, row := range []struct {
		name string
		q    exchange.Request
		want int
	}{
		{"no route", exchange.Request{Path: []byte("/")}, 404},
		{"a path that can be read in two ways", exchange.Request{Path: []byte("/up/%2e%2e/a")}, 400},
		{"CONNECT", exchange.Request{Path: up, Connect: true}, 501},
		{"an upgrade that the route does not allow", exchange.Request{Path: up, Upgrade: true}, 501},
		{"a circle of proxies", exchange.Request{Path: up, Hops: 10}, 508},
		{"the last hop", exchange.Request{Path: up, LastHop: true}, 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, "")
			var c client
			require.True(t, r.run(&c, row.q), "the client's connection is in step")
			require.True(t, c.own)
			require.Equal(t, row.want, c.status)
			require.Equal(t, []int{row.want}, append(r.unrouted.answered, r.counted.answered...))
		})
	}
}

func TestRun_FailuresOpenTheCircuit(t *testing.T) {
	r := newRig(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n") // cut short
	for range 2 {
		var c client
		require.True(t, r.run(&c, exchange.Request{Path: []byte("/up")}))
		require.Equal(t, 502, c.status)
	}
	require.Equal(t, []string{"open: upstream closed"}, r.counted.circuits)
	var c client
	require.True(t, r.run(&c, exchange.Request{Path: []byte("/up")}))
	require.Equal(t, 503, c.status)
	require.InDelta(t, 60, c.retryAfter.Seconds(), 30)
}

func TestRun_ResponseThatBreaksOffIsNotComplete(t *testing.T) {
	r := newRig(t, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello")
	var c client
	require.False(t, r.run(&c, exchange.Request{Path: []byte("/up")}))
	require.Equal(t, 200, c.status)
	require.False(t, c.ended)
	require.Empty(t, r.counted.circuits)
}

// The read that waits for more of the body is where a pause is noticed.
func TestRun_ResponseThatPausesForTooLongIsLogged(t *testing.T) {
	r := newRig(t, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", true)
	snap := *r.shared.Snapshot.Load()
	snap.BodyIdleTimeout = 50 * time.Millisecond
	r.shared.Snapshot.Store(&snap)
	var c client
	require.False(t, r.run(&c, exchange.Request{Path: []byte("/up")}))
	require.Equal(t, []string{"200 response cut short: true"}, r.counted.failures)
}

func TestRun_ClientThatHasGoneCostsTheUpstreamNothing(t *testing.T) {
	r := newRig(t, "")
	c := client{gone: true}
	require.False(t, r.run(&c, exchange.Request{Path: []byte("/up")}))
	require.Zero(t, c.status)
	require.Equal(t, 1, r.counted.aborted)
	require.Empty(t, r.counted.circuits)
}
