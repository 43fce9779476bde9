package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// anUpload is a POST whose body comes piece by piece, in either protocol.
type anUpload struct {
	more   func(piece string, last bool)
	status func() int // of the answer
}

var uploads = map[string]func(t testing.TB, r *rig) anUpload{
	"HTTP 1": func(t testing.TB, r *rig) anUpload {
		c := r.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
		return anUpload{
			func(piece string, last bool) {
				chunk := fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
				if last {
					chunk += "0\r\n\r\n"
				}
				c.send(chunk)
			},
			func() int { return c.must(t, "POST").status },
		}
	},
	"HTTP 2": func(t testing.TB, r *rig) anUpload {
		h := r.dialH2(t)
		id := h.ask("POST", "/", false)
		return anUpload{
			func(piece string, last bool) { h.data(id, last, piece) },
			func() int {
				status, err := strconv.Atoi(h.answer(t, id).final().status)
				require.NoError(t, err, "%s", h)
				return status
			},
		}
	},
}

func forEachUpload(t *testing.T, body func(t *testing.T, m mode, open func(t testing.TB, r *rig) anUpload)) {
	forEachMode(t, func(t *testing.T, m mode) {
		for name, open := range uploads {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				body(t, m, open)
			})
		}
	})
}

// probeWith opens the circuit and sends the first piece of an upload, which is the probe and is answered by h.
func (r *rig) probeWith(t testing.TB, open func(t testing.TB, r *rig) anUpload, h handler) anUpload {
	t.Helper()
	r.fail(t, "/", r.U[1])
	pause(3 * time.Millisecond)
	before := len(r.U[1].started())
	r.U[1].play(h)
	up := open(t, r)
	up.more("h", false)
	r.U[1].awaitStarted(t, before+1)
	require.Equal(t, 2, r.state(r.U[1]))
	return up
}

// slowPost is a request whose body comes whole only once the request was admitted.
func (r *rig) slowPost(t testing.TB) int {
	t.Helper()
	before := len(r.U[1].started())
	c := r.dial(t)
	defer c.close()
	c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh")
	eventually(t, func() bool {
		_ = c.conn.SetReadDeadline(time.Now().Add(3 * time.Millisecond))
		_, err := c.w.br.Peek(1)
		return err == nil || len(r.U[1].started()) > before
	}, "neither admitted nor refused")
	c.send("i")
	return c.must(t, "POST").status
}

func answering(status string) handler {
	return func(c *uconn, q *message) bool {
		return c.body(q) && c.send("HTTP/1.1 "+status+"\r\nX-U: x\r\nContent-Length: 0\r\n\r\n")
	}
}

func TestCase292_RequestThatIsThereTakesTheProbesPlaceFromAnUpload(t *testing.T) {
	there := []request{{}, {m: "POST", body: "x"}, {m: "POST", chunks: []string{"x", "y"}}, {m: "POST"}}
	forEachUpload(t, func(t *testing.T, m mode, open func(t testing.TB, r *rig) anUpload) {
		for i, q := range there {
			late := []string{"200 OK", "503 Late"}[i%2]
			r := newRig(t, m, threshold1)
			up := r.probeWith(t, open, answering(late))
			require.Equal(t, 200, r.dial(t).do(t, q).status, "it must not wait for an upload")
			require.Zero(t, r.state(r.U[1]))
			up.more("i", true)
			require.Equal(t, late[:3], strconv.Itoa(up.status()))
			require.Zero(t, r.state(r.U[1]), "what gave its place away has no say")
			require.Equal(t, 1, r.transitions(r.U[1], "open"))
		}
	})
}

func TestCase292_UploadThatWaitsForItsClientGivesTheSlotBack(t *testing.T) {
	forEachUpload(t, func(t *testing.T, m mode, open func(t testing.TB, r *rig) anUpload) {
		r := newRig(t, m, threshold1)
		start := time.Now()
		up := r.probeWith(t, open, echo)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { // a byte now and then: what counts is the time in all
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
					up.more("x", false)
				}
			}
		}()
		eventually(t, func() bool { return r.slowPost(t) == 200 }, "the slot is kept")
		require.GreaterOrEqual(t, time.Since(start), 900*time.Millisecond, "the slot was given back early")
		require.Zero(t, r.state(r.U[1]))
		opened := r.transitions(r.U[1], "open")
		close(stop)
		<-stopped
		up.more("i", true)
		require.Equal(t, 200, up.status(), "the upload itself goes on")
		require.Equal(t, opened, r.transitions(r.U[1], "open"))
	})
}

func TestCase292_UploadThatIsFastDecides(t *testing.T) {
	forEachUpload(t, func(t *testing.T, m mode, open func(t testing.TB, r *rig) anUpload) {
		r := newRig(t, m, threshold1)
		for _, status := range []string{"200 OK", "503 Broken"} {
			r.closeCircuit(t)
			opened := r.transitions(r.U[1], "open")
			up := r.probeWith(t, open, answering(status))
			up.more("i", true)
			require.Equal(t, status[:3], strconv.Itoa(up.status()))
			eventually(t, func() bool { return r.state(r.U[1]) != 2 }, "no verdict")
			require.Equal(t, status[0] == '5', r.transitions(r.U[1], "open") == opened+2)
		}
	})
}

// A body that has come whole is no reason to give way: the request waits for the upstream only.
func TestCase292_WholeBodyHoldsTheSlot(t *testing.T) {
	forEachUpload(t, func(t *testing.T, m mode, open func(t testing.TB, r *rig) anUpload) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		t.Cleanup(release)
		whole := len(r.U[1].requests())
		r.U[1].play(func(c *uconn, q *message) bool {
			return c.body(q) && func() bool { <-hold; return true }() && c.send(ok("late"))
		})
		up := open(t, r)
		up.more("hello", true)
		eventually(t, func() bool { return len(r.U[1].requests()) > whole }, "the request does not arrive")
		r.refusedByCircuit(t, "/")
		require.Equal(t, 503, r.slowPost(t))
		require.Equal(t, 503, r.dial(t).do(t, request{m: "POST", body: "x"}).status)
		release()
		require.Equal(t, 200, up.status())
		require.Zero(t, r.state(r.U[1]))
	})
}

// A client that waits for a 100 is not what the request waits for.
func TestCase292_WaitingForA100IsTheUpstreamsTime(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		before := len(r.U[1].started())
		goOn := make(chan struct{})
		ask := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(ask)
		r.U[1].play(func(c *uconn, q *message) bool {
			<-goOn
			return c.send("HTTP/1.1 100 Continue\r\n\r\n") && echo(c, q)
		})
		c := r.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		r.U[1].awaitStarted(t, before+1)
		pause(1300 * time.Millisecond)
		require.Equal(t, 503, r.slowPost(t), "the upstream's time does not count")
		asked := time.Now()
		ask()
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		head, err := c.w.responseHead("POST")
		require.NoError(t, err)
		require.Equal(t, 100, head.status)
		eventually(t, func() bool { return r.slowPost(t) == 200 }, "the slot is kept")
		require.GreaterOrEqual(t, time.Since(asked), 900*time.Millisecond)
		c.send("hi")
		require.Equal(t, 200, c.must(t, "POST").status)
	})
}

func TestCase292_UpstreamThatIsSlowToReadIsTheUpstreamsTime(t *testing.T) {
	const size = 16 << 20
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		r.fail(t, "/", r.U[1])
		pause(3 * time.Millisecond)
		before := len(r.U[1].started())
		r.U[1].play(func(c *uconn, q *message) bool {
			c.unrecorded()
			pause(1300 * time.Millisecond)
			return echo(c, q)
		})
		c := r.dial(t)
		wait := c.sendAside(append([]string{fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)},
			blocks(strings.Repeat("b", 64<<10), size>>16)...)...)
		r.U[1].awaitStarted(t, before+1)
		pause(1100 * time.Millisecond)
		require.Equal(t, 503, r.slowPost(t), "the upstream's time does not count")
		require.Equal(t, 200, c.must(t, "POST").status)
		wait()
		require.Zero(t, r.state(r.U[1]), "the upload decides")
	})
}
