package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// A process that was paused (by a debugger, with its container, by a machine too busy) finds that its limits have
// passed, and in its sockets what came before. What came counts.

const (
	outlastedLimit = 500 * time.Millisecond
	pausedFor      = 1200 * time.Millisecond // a SYN that was dropped is sent again after a second
)

// outlasted has limits that a pause outlasts, and a circuit that one failure opens.
func outlasted(up string) processSpec {
	c := config.Default()
	c.HealthInterval, c.HealthTimeout = time.Hour, time.Second
	c.UpstreamTimeout, c.ConnectTimeout, c.ClientIdleTimeout = outlastedLimit, outlastedLimit, outlastedLimit
	c.BodyIdleTimeout = outlastedLimit
	c.FailureThreshold, c.DefaultCooldown = 1, time.Hour
	c.Routes = []config.Route{{Prefix: "/", Upstream: up}}
	return processSpec{Config: c, Head: outlastedLimit}
}

// pausable is an upstream whose script tells when a request is there, and answers when it is told to.
type pausable struct {
	*upstream
	arrived, answer chan struct{}
}

func newPausable(t *testing.T) *pausable {
	u := &pausable{newUpstream(t, "U"), make(chan struct{}, 1), make(chan struct{}, 1)}
	t.Cleanup(u.close)
	u.playAlways(func(c *uconn, q *message) bool {
		u.arrived <- struct{}{}
		<-u.answer
		return c.body(q) && c.send(describe(q))
	})
	return u
}

func TestCase321_AnswerThatCameDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newPausable(t)
		p := startProcess(t, m, outlasted(u.addr))
		h1, h2 := p.dial(t), p.dialH2(t)
		for range 2 {
			h1.send(request{}.String())
			<-u.arrived
			id := h2.ask("GET", "/", true)
			<-u.arrived
			p.paused(func() {
				u.answer <- struct{}{}
				u.answer <- struct{}{}
				pause(pausedFor)
			})
			require.Equal(t, 200, h1.must(t, "GET").status)
			h2.want(t, id, 200)
		}
	})
}

// The head is longer than what one read takes.
func TestCase321_LongHeadThatCameDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newPausable(t)
		u.playAlways(func(c *uconn, q *message) bool {
			u.arrived <- struct{}{}
			<-u.answer
			return c.body(q) && c.send("HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Filler: "+strings.Repeat("x", 1000)+"\r\n", 30)+"Content-Length: 0\r\n\r\n")
		})
		p := startProcess(t, m, outlasted(u.addr))
		c := p.dial(t)
		c.send(request{}.String())
		<-u.arrived
		p.paused(func() { u.answer <- struct{}{}; pause(pausedFor) })
		require.Equal(t, 200, c.must(t, "GET").status)
	})
}

func TestCase321_AnswerThatCameTooLateDoesNotCount(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newPausable(t)
		p := startProcess(t, m, outlasted(u.addr))
		c := p.dial(t)
		c.send(request{}.String())
		<-u.arrived
		p.paused(func() { pause(pausedFor) })
		require.Equal(t, 504, c.must(t, "GET").status)
		u.answer <- struct{}{}
	})
}

func TestCase321_RequestThatCameDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newUpstream(t, "U")
		t.Cleanup(u.close)
		p := startProcess(t, m, outlasted(u.addr))
		idle, begun, body, h2 := p.dial(t), p.dial(t), p.dial(t), p.dialH2(t)
		require.Equal(t, 200, idle.do(t, request{}).status)
		begun.send("GET / HT")
		body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
		id := h2.ask("POST", "/", false)
		h2.data(id, false, "hello")
		u.awaitStarted(t, 3)
		p.paused(func() {
			idle.send(request{}.String())
			begun.send("TP/1.1\r\nHost: a\r\n\r\n")
			body.send("world")
			h2.data(id, true, "world")
			pause(pausedFor)
		})
		require.Equal(t, 200, idle.must(t, "GET").status, "an idle connection that was used again")
		require.Equal(t, 200, begun.must(t, "GET").status, "a head that had begun")
		require.Equal(t, 200, body.must(t, "POST").status, "a body that had begun")
		h2.want(t, id, 200)
	})
}

// What an upstream, or a client, has read during a pause is progress.
func TestCase321_ReadingDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const size = 8 << 20
		u := newPausable(t)
		u.recordMax = 1
		p := startProcess(t, m, outlasted(u.addr))
		c := p.dial(t)
		sent := c.sendAside("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n", strings.Repeat("x", size))
		<-u.arrived
		p.paused(func() {
			pause(pausedFor) // the socket is full by now
			u.answer <- struct{}{}
			pause(quiet)
		})
		require.Equal(t, 200, c.must(t, "POST").status)
		sent()
	})
}

func TestCase321_ReadingOfAResponseDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const size = 8 << 20
		u := newPausable(t)
		u.playAlways(func(c *uconn, q *message) bool {
			u.arrived <- struct{}{}
			return c.body(q) && c.send("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n", strings.Repeat("x", size))
		})
		p := startProcess(t, m, outlasted(u.addr))
		c := p.dial(t)
		c.send(request{}.String())
		<-u.arrived
		got := make(chan *message, 1)
		p.paused(func() {
			pause(pausedFor)
			go func() {
				resp, _ := c.response("GET")
				got <- resp
			}()
			pause(quiet)
		})
		require.EqualValues(t, size, (<-got).bodyLen)
	})
}

func TestCase321_CheckThatWasAnsweredDuringAPausePasses(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		u := newPausable(t)
		u.onHealth(func(c *uconn, _ *message) {
			u.arrived <- struct{}{}
			<-u.answer
			c.send(healthy)
		})
		s := outlasted(u.addr)
		s.Config.HealthInterval, s.Config.HealthTimeout = 600*time.Millisecond, outlastedLimit
		p := startProcess(t, m, s)
		<-u.arrived
		p.paused(func() { u.answer <- struct{}{}; pause(pausedFor) })
		<-u.arrived // the next one: the first was judged
		u.answer <- struct{}{}
		require.Zero(t, p.scrape()[`ferryman_circuit_transitions_total{to="open",upstream="`+u.addr+`"}`])
	})
}
