package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Some clients end the body of a POST with an empty line that its length does not count.
func TestCase306_EmptyLinesBeginNoHead(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortHeads)
		post := request{m: "POST", body: "hello"}
		for _, lines := range [][]string{{"\r\n"}, {"\r", "\n"}, {"\r\n\r\n\r\n"}, {"\r\n", "\r", "\n\r", "\n"}} {
			c := r.dial(t)
			c.send(post.String())
			c.want(t, "POST", 200)
			for _, part := range lines {
				c.send(part)
				pause(5 * time.Millisecond)
			}
			pause(2 * shortHead)
			c.still(t)
			eventually(t, func() bool { return r.metrics()[`ferryman_connections{state="idle"}`] == 1 }, "not idle")
			require.Equal(t, 200, c.do(t, request{}).status)
			// The same in one segment.
			c.send(post.String() + strings.Join(lines, ""))
			c.want(t, "POST", 200)
			c.send(strings.Join(lines, "") + post.String() + strings.Join(lines, "") + request{path: "/api"}.String())
			c.want(t, "POST", 200)
			require.Equal(t, "U2", c.want(t, "GET", 200).get("X-U"))
			c.close()
			r.awaitIdle(t)
		}
	})
}

func TestCase306_EmptyLinesKeepNoConnection(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.ClientIdleTimeout = clientIdle })
		c := r.dial(t)
		require.Equal(t, 200, c.do(t, request{}).status)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.trickle(clientIdle/4, strings.Repeat("\r\n", 90))
		}()
		start := time.Now()
		b, _ := c.end() // a reset where an empty line crosses the close
		require.Empty(t, string(b), "no request has begun")
		require.Less(t, time.Since(start), patience/2, "an empty line is no sign of life")
		c.close()
		<-done
	})
}

func TestCase306_EmptyLinesAreBounded(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.serves(t, strings.Repeat("\r\n", 100)+"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		r.refuses(t, strings.Repeat("\r\n", 101)+"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		c := r.dial(t)
		wait := c.sendAside(strings.Split(strings.Repeat("\r.\n.", 101), ".")...)
		c.refused(t, 400)
		wait()
		c.close()
		for _, line := range []string{"\n", "\r\r\n", " \r\n", "\r\n\n", "\r\n\r"} { // others are none
			r.refuses(t, line+"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
	})
}

func TestCase306_AnEmptyLineIsNoPreface(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.refusesExactly(t, "\r\n"+h2Preface+h2Settings, 400, 505)
	}, plainModes()...)
}

func TestCase306_ADrainClosesWhoSendsEmptyLinesOnly(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		require.Equal(t, 200, c.do(t, request{}).status)
		c.send("\r\n")
		c.still(t)
		start := time.Now()
		r.shutdown(t)
		b, _ := c.end()
		require.Empty(t, string(b))
		require.Less(t, time.Since(start), patience/2, "it held the drain")
	})
}
