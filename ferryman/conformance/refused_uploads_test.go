package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hugeUpload writes 80 MiB to a route, whatever comes back meanwhile.
func hugeUpload(t testing.TB, c *client, path string) {
	t.Helper()
	const size = 80 << 20
	c.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, size))
	block := strings.Repeat("b", 256<<10)
	for range size / len(block) {
		c.send(block)
		require.NoError(t, c.writeErr, "reset after %d bytes", c.bytesSent.Load())
	}
}

// Clients of the simple kind read nothing before everything is written.
func TestCase312_TheAnswerReachesAHugeUpload(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot)
		t.Run("own reply", func(t *testing.T) {
			c := r.dial(t)
			start := time.Now()
			hugeUpload(t, c, "/none")
			require.Greater(t, time.Since(start), 300*time.Millisecond, "what is thrown away is taken at a pace")
			resp := c.must(t, "POST")
			own(t, resp, 404, "no route")
			require.Equal(t, []string{"close"}, resp.values("Connection"))
			c.closedByPeer(t)
		})
		t.Run("an upstream's", func(t *testing.T) {
			r.U[2].play(func(c *uconn, q *message) bool {
				c.unrecorded()
				_, _ = io.CopyN(io.Discard, c.w.br, 64<<10)
				c.send("HTTP/1.1 413 Too Large\r\nX-U: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
				return false
			})
			c := r.dial(t)
			hugeUpload(t, c, "/api")
			resp := c.must(t, "POST")
			require.Equal(t, 413, resp.status)
			require.Equal(t, "no", string(resp.body))
			c.closedByPeer(t)
		})
	})
}

// Who sends without end to nobody holds up no one else.
func TestCase312_OthersAreServedMeanwhile(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot)
		stop := make(chan struct{})
		for range 8 {
			c := r.dial(t)
			c.send(fmt.Sprintf("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", int64(1)<<40))
			c.want(t, "POST", 404)
			done := make(chan struct{})
			go func() {
				defer close(done)
				block := strings.Repeat("b", 64<<10)
				for c.writeErr == nil {
					select {
					case <-stop:
						return
					default:
						c.send(block)
					}
				}
			}()
			defer func() { <-done }()
		}
		defer close(stop)
		c := r.dial(t)
		for range 50 {
			require.Equal(t, 200, c.do(t, request{path: "/api"}).status)
		}
	})
}

func TestCase312_ADrainDoesNotWaitForThem(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, noRoot)
		c := r.dial(t)
		c.send(fmt.Sprintf("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", int64(1)<<40))
		c.want(t, "POST", 404)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for c.writeErr == nil {
				c.send("b")
				pause(quiet)
			}
		}()
		start := time.Now()
		r.shutdown(t)
		require.Less(t, time.Since(start), patience/2)
		<-done
		c.close()
	})
}
