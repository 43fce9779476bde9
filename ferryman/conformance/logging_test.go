package conformance

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// statusOf is that of a request on a connection of its own.
func statusOf(t *testing.T, r *rig, path string) int {
	t.Helper()
	c := r.dial(t)
	defer c.close()
	return c.do(t, request{path: path}).status
}

// Nobody takes what the proxy logs: whatever it has to say, requests, reloads and metrics go on.
func TestCase285_LogThatIsNotReadHoldsNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) {
			s.cfg.FailureThreshold, s.cfg.DefaultCooldown = 1, 50*time.Millisecond
			s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/refused", Upstream: closedPort(t)})
		})
		func() {
			r.log.mu.Lock()
			defer r.log.mu.Unlock()
			for i := range 20 { // a circuit that flaps, and a line about it each time
				require.Contains(t, []int{502, 503}, statusOf(t, r, "/down"))
				require.Equal(t, 200, statusOf(t, r, "/api"))
				r.reload(t, func(c *config.Config) { c.FailureThreshold = 1 + i%2 })
				pause(5 * time.Millisecond)
			}
			r.reload(t, func(c *config.Config) { c.FailureThreshold = 1_000_000 })
			c := r.dial(t)
			for range 1100 { // a line each at debug
				c.send(request{path: "/refused"}.String())
				require.Equal(t, 502, c.must(t, "GET").status)
			}
			require.Equal(t, 200, statusOf(t, r, "/api"))
			require.Positive(t, r.sum("ferryman_log_lines_lost_total", `log="main"`))
		}()
		lost := int(r.sum("ferryman_log_lines_lost_total"))
		eventually(t, func() bool {
			told := 0
			for _, m := range regexp.MustCompile(`msg="log lines lost" lines=(\d+)`).FindAllStringSubmatch(r.log.text(), -1) {
				n, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				told += n
			}
			return told == lost
		}, "%d are lost, and nobody is told", lost)
	})
}

// The end of a proxy waits for its log, but not for long.
func TestCase285_EndOfAProxyWaitsForItsLogForAMoment(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		require.Equal(t, 502, statusOf(t, r, "/down"))
		r.shutdown(t)
		require.Equal(t, 1, r.log.count("request failed"), "not there when Shutdown returns")

		r = newRig(t, m)
		r.log.mu.Lock()
		require.Equal(t, 502, statusOf(t, r, "/down"))
		began := time.Now()
		require.NoError(t, r.proxy.Close())
		took := time.Since(began)
		r.log.mu.Unlock()
		require.Less(t, took, patience)
	})
}

// At the default level one failed request has one line, with its cause; those that follow are counted.
func TestCase325_FirstFailureOfAKindIsALine(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[2].play(replyThenClose(""))
		for range 3 {
			require.Equal(t, 502, statusOf(t, r, "/down"))
		}
		r.U[3].play(replyThenClose("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 100\r\n\r\nshort"))
		cut := r.dial(t)
		cut.send(request{path: "/api/v1"}.String())
		cut.truncated(t, "short")
		post := request{m: "POST", path: "/api"}
		require.Equal(t, 502, r.dial(t).do(t, post).status)
		eventually(t, func() bool { return r.log.count("level=INFO", "request failed") == 3 }, "%s", r.log.text())
		require.Equal(t, 1, r.log.count("level=INFO", "upstream="+r.down, "status=502", "cause=dial", "error="))
		require.Equal(t, 1, r.log.count("level=INFO", "upstream="+r.U[2].addr, "status=502", `cause="upstream closed"`, "error="))
		require.Equal(t, 1, r.log.count("level=INFO", "upstream="+r.U[3].addr, "status=200", `cause="response cut short"`, "error="))
		r.shutdown(t)
		require.Equal(t, 1, r.log.count("level=INFO", "upstream="+r.down, "status=502", "cause=dial", "error=", "repeated=2"), "%s", r.log.text())
		require.Equal(t, 0, r.log.count("upstream="+r.U[2].addr, "repeated="))
	})
}
