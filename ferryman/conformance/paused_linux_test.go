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
	outlasted = 2 * time.Second // a limit that the pause outlasts
	pausedFor = outlasted + 300*time.Millisecond
)

// rounds runs a body in every mode, and again where it says that the machine was too busy for it.
func rounds(t *testing.T, body func(t *testing.T, m mode) (inTime bool), only ...mode) {
	t.Helper()
	forEachMode(t, func(t *testing.T, m mode) {
		for range 10 {
			if body(t, m) {
				return
			}
		}
		require.Fail(t, "the machine is too busy")
	}, only...)
}

// unlimited has long limits, and a circuit that one failure opens.
func unlimited(up string) processSpec {
	c := config.Default()
	c.HealthInterval, c.HealthTimeout = time.Hour, time.Second
	c.UpstreamTimeout, c.ConnectTimeout, c.ClientIdleTimeout = patience, patience, time.Minute
	c.FailureThreshold, c.DefaultCooldown = 1, time.Hour
	c.Routes = []config.Route{{Prefix: "/", Upstream: up}}
	return processSpec{Config: c}
}

// pausable is an upstream whose script tells when a request is there, and answers when it is told to.
type pausable struct {
	*upstream
	arrived, answer, over chan struct{}
}

func newPausable(t *testing.T) *pausable {
	u := &pausable{newUpstream(t, "U"), make(chan struct{}), make(chan struct{}, 2), make(chan struct{})}
	t.Cleanup(u.close)
	t.Cleanup(func() { close(u.over) })
	u.playAlways(func(c *uconn, q *message) bool { return u.told() && c.body(q) && c.send(describe(q)) })
	return u
}

// told is for scripts.
func (u *pausable) told() bool {
	select {
	case u.arrived <- struct{}{}:
	case <-u.over:
		return false
	}
	select {
	case <-u.answer:
		return true
	case <-u.over:
		return false
	}
}

func (u *pausable) await(t testing.TB) {
	t.Helper()
	select {
	case <-u.arrived:
	case <-time.After(patience):
		require.Fail(t, "no request arrives")
	}
}

func TestCase321_AnswerThatCameDuringAPauseCounts(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		u := newPausable(t)
		s := unlimited(u.addr)
		s.Config.UpstreamTimeout = outlasted
		p := startProcess(t, m, s)
		h1, h2 := p.dial(t), p.dialH2(t)
		begun := time.Now()
		h1.send(request{}.String())
		u.await(t)
		id := h2.ask("GET", "/", true)
		u.await(t)
		if !p.paused(begun, outlasted, func() {
			u.answer <- struct{}{}
			u.answer <- struct{}{}
			pause(pausedFor)
		}) {
			return false
		}
		require.Equal(t, 200, h1.must(t, "GET").status)
		h2.want(t, id, 200)
		return true
	})
}

// The head is longer than what one read takes.
func TestCase321_LongHeadThatCameDuringAPauseCounts(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		u := newPausable(t)
		head := "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Filler: "+strings.Repeat("x", 1000)+"\r\n", 30) + "Content-Length: 0\r\n\r\n"
		u.playAlways(func(c *uconn, q *message) bool { return u.told() && c.body(q) && c.send(head) })
		s := unlimited(u.addr)
		s.Config.UpstreamTimeout = outlasted
		p := startProcess(t, m, s)
		c, begun := p.dial(t), time.Now()
		c.send(request{}.String())
		u.await(t)
		if !p.paused(begun, outlasted, func() { u.answer <- struct{}{}; pause(pausedFor) }) {
			return false
		}
		require.Equal(t, 200, c.must(t, "GET").status)
		return true
	})
}

func TestCase321_AnswerThatDidNotComeIsLate(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newPausable(t)
		s := unlimited(u.addr)
		s.Config.UpstreamTimeout = outlasted
		p := startProcess(t, m, s)
		c := p.dial(t)
		c.send(request{}.String())
		u.await(t)
		p.paused(time.Now(), patience, func() { pause(pausedFor) })
		require.Equal(t, 504, c.must(t, "GET").status)
	})
}

func TestCase321_RequestThatCameDuringAPauseCounts(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		u := newUpstream(t, "U")
		t.Cleanup(u.close)
		s := unlimited(u.addr)
		s.Config.ClientIdleTimeout, s.Config.BodyIdleTimeout, s.Head = outlasted, outlasted, outlasted
		p := startProcess(t, m, s)
		begun := time.Now()
		idle, head, body, h2 := p.dial(t), p.dial(t), p.dial(t), p.dialH2(t)
		idle.send(request{}.String())
		if _, err := idle.response("GET"); err != nil {
			return false // it was idle for too long before
		}
		head.send("GET / HT")
		body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
		id := h2.ask("POST", "/", false)
		h2.data(id, false, "hello")
		if !within(outlasted, func() bool { return len(u.started()) == 3 }) {
			return false
		}
		if !p.paused(begun, outlasted, func() {
			idle.send(request{}.String())
			head.send("TP/1.1\r\nHost: a\r\n\r\n")
			body.send("world")
			h2.data(id, true, "world")
			pause(pausedFor)
		}) {
			return false
		}
		require.Equal(t, 200, idle.must(t, "GET").status, "an idle connection that was used again")
		require.Equal(t, 200, head.must(t, "GET").status, "a head that had begun")
		require.Equal(t, 200, body.must(t, "POST").status, "a body that had begun")
		h2.want(t, id, 200)
		return true
	})
}

// What an upstream has read during a pause is progress.
func TestCase321_ReadingDuringAPauseCounts(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		const size = 8 << 20
		u := newPausable(t)
		u.recordMax = 1
		s := unlimited(u.addr)
		s.Config.UpstreamTimeout = outlasted
		p := startProcess(t, m, s)
		c, begun := p.dial(t), time.Now()
		sent := c.sendAside("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n", strings.Repeat("x", size))
		defer sent()
		u.await(t)
		pause(quiet) // the sockets fill
		if !p.paused(begun, outlasted, func() {
			pause(pausedFor)
			u.answer <- struct{}{}
			pause(quiet)
		}) {
			c.close()
			return false
		}
		require.Equal(t, 200, c.must(t, "POST").status)
		return true
	})
}

func TestCase321_ReadingOfAResponseDuringAPauseCounts(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		const size = 8 << 20
		u := newPausable(t)
		u.answer <- struct{}{}
		u.playAlways(func(c *uconn, q *message) bool {
			return u.told() && c.body(q) && c.send("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n", strings.Repeat("x", size))
		})
		s := unlimited(u.addr)
		s.Config.BodyIdleTimeout = outlasted
		p := startProcess(t, m, s)
		c, begun := p.dial(t), time.Now()
		c.send(request{}.String())
		u.await(t)
		pause(quiet) // the sockets fill
		got := make(chan *message, 1)
		if !p.paused(begun, outlasted, func() {
			pause(pausedFor)
			go func() {
				resp, _ := c.response("GET")
				got <- resp
			}()
			pause(quiet)
		}) {
			return false
		}
		resp := <-got
		require.NotNil(t, resp)
		require.EqualValues(t, size, resp.bodyLen)
		return true
	})
}

func TestCase321_CheckThatWasAnsweredDuringAPausePasses(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		u := newPausable(t)
		u.onHealth(func(c *uconn, _ *message) {
			if u.told() {
				c.send(healthy)
			}
		})
		s := unlimited(u.addr)
		s.Config.HealthInterval, s.Config.HealthTimeout = outlasted+time.Second, outlasted
		p := startProcess(t, m, s)
		u.await(t)
		arrived := time.Now() // somewhat later than the check has begun
		if !p.paused(arrived, outlasted/2, func() { u.answer <- struct{}{}; pause(pausedFor) }) {
			return false
		}
		u.await(t) // the next one: the first was judged
		require.Zero(t, p.scrape()[`ferryman_circuit_transitions_total{to="open",upstream="`+u.addr+`"}`])
		return true
	}, goroutines)
}
