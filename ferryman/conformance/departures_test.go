package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// promptly is far below every time-out of the rig, which are twice as long as patience.
const promptly = 10 * time.Second

// readsNothing is an upstream that takes a request's head and leaves its body in the kernel, which is full
// soon. When the test is over it is released.
func readsNothing(t testing.TB, first string) handler {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	return func(c *uconn, q *message) bool {
		c.unrecorded()
		_ = c.conn.SetReadBuffer(16 << 10)
		c.send(first)
		<-release
		return false
	}
}

// stuffed sends a body until nothing more is taken for a moment.
func (c *client) stuffed(t testing.TB, head string) {
	t.Helper()
	c.send(head)
	block := []byte(strings.Repeat("b", 64<<10))
	for {
		_ = c.conn.SetWriteDeadline(time.Now().Add(5 * quiet))
		if _, err := c.conn.Write(block); err != nil {
			require.ErrorContains(t, err, "timeout")
			return
		}
	}
}

func (r *rig) aborts() int { return int(r.sum("ferryman_client_aborts_total")) }

// goneAtOnce waits for the abort to be counted, and for nothing to be left in use.
func (r *rig) goneAtOnce(t testing.TB, aborts int, left time.Time) {
	t.Helper()
	eventually(t, func() bool { return r.aborts() == aborts }, "the departure is not noticed")
	require.Less(t, time.Since(left), promptly)
	r.awaitIdle(t)
	require.Zero(t, r.answered(502)+r.answered(504))
}

const large = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n"

func TestCase298_ResetDuringAnUploadThatTheUpstreamDoesNotRead(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for i, row := range []struct{ head, first string }{
			{large + "\r\n", ""},
			{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4000000\r\n", ""},
			{large + "Expect: 100-continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"},
			{large + "\r\n", "HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: 10\r\n\r\nearly"},
		} {
			require.NotEqual(t, failure, r.verdictOf(t, "/", r.U[1], func() {
				r.U[1].play(readsNothing(t, row.first))
				c := r.dial(t)
				c.stuffed(t, row.head)
				left := time.Now()
				c.rst()
				r.goneAtOnce(t, i+1, left)
			}))
		}
	})
}

func TestCase298_StreamThatIsResetDuringAnUploadThatTheUpstreamDoesNotRead(t *testing.T) {
	leave := map[string]func(h *h2client, id uint32){
		"stream":     func(h *h2client, id uint32) { h.rstStream(id, http2.ErrCodeCancel) },
		"connection": func(h *h2client, _ uint32) { h.rst() },
	}
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for name, leave := range leave {
			t.Run(name, func(t *testing.T) {
				require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
					before := r.aborts()
					r.U[1].play(readsNothing(t, ""))
					h := r.dialH2(t)
					id := h.ask("POST", "/", false)
					h.fill(t, id)
					left := time.Now()
					leave(h, id)
					eventually(t, func() bool { return r.aborts() == before+1 }, "the departure is not noticed")
					require.Less(t, time.Since(left), promptly)
					eventually(t, func() bool { return r.sum("ferryman_upstream_connections", `state="in_use"`) == 0 }, "the upload goes on")
				}))
			})
		}
	})
}

// fill sends DATA as the windows allow, until they are not opened any more.
func (h *h2client) fill(t testing.TB, id uint32) {
	t.Helper()
	block := strings.Repeat("b", 16<<10)
	granted := func() (conn, stream int64) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return 65535 + h.granted, int64(h.got[http2.SettingInitialWindowSize]) + h.stream(id).granted
	}
	for sent := int64(0); ; sent += int64(len(block)) {
		if !within(5*quiet, func() bool {
			conn, stream := granted()
			return min(conn, stream)-sent >= int64(len(block))
		}) {
			require.NotZero(t, sent)
			return
		}
		h.data(id, false, block)
	}
}

func TestCase298_DepartureDuringADial(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		black := r.cfg.Routes[6].Upstream
		inUse := fmt.Sprintf(`ferryman_upstream_connections{state="in_use",upstream=%q}`, black)
		aborts := 0
		for _, row := range []struct {
			raw   string
			leave func(*client)
		}{
			{request{path: "/black"}.String(), (*client).rst},
			{request{path: "/black"}.String(), (*client).fin},
			{"POST /black HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", (*client).rst},
		} {
			c := r.dial(t)
			c.send(row.raw)
			eventually(t, func() bool { return r.sum("ferryman_connections") == 1 }, "the request is not there")
			c.still(t)
			left := time.Now()
			row.leave(c)
			aborts++
			eventually(t, func() bool { return r.aborts() == aborts && r.sum("ferryman_connections") == 0 }, "the departure is not noticed")
			require.Less(t, time.Since(left), promptly)
			require.Zero(t, r.metrics()[inUse])
			require.Zero(t, r.metrics()[fmt.Sprintf("ferryman_circuit_state{upstream=%q}", black)])
		}
	})
}

func TestCase298_StreamThatIsResetDuringADial(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold1)
		h := r.dialH2(t)
		for i, row := range []struct {
			method string
			end    bool
		}{{"GET", true}, {"POST", false}} {
			id := h.ask(row.method, "/black", row.end)
			h.alive(t) // and the stream was opened before
			left := time.Now()
			h.rstStream(id, http2.ErrCodeCancel)
			eventually(t, func() bool { return r.aborts() == i+1 }, "the departure is not noticed")
			require.Less(t, time.Since(left), promptly)
		}
	})
}

func TestCase298_ResetWhileTheUpstreamThinksAboutA100(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
			before := len(r.U[1].started())
			r.U[1].play(readsNothing(t, ""))
			c := r.dial(t)
			c.send(large + "Expect: 100-continue\r\n\r\n")
			r.U[1].awaitStarted(t, before+1)
			left := time.Now()
			c.rst()
			r.goneAtOnce(t, 1, left)
		}))
	})
}

// The end of a client's side within its body cuts the body; what the client sends behind a body is the next
// request, however long the upstream leaves the body alone.
func TestCase298_EndOfTheClientsSideDuringAnUploadIsNoDeparture(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		release := make(chan struct{})
		slow := func(c *uconn, q *message) bool {
			c.unrecorded()
			<-release
			return echo(c, q)
		}
		const size = 8 << 20
		r.U[1].play(slow)
		c := r.dial(t)
		next := request{path: "/next", nonce: nonce()}
		wait := c.sendAside(append(append([]string{fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)},
			blocks(strings.Repeat("b", 64<<10), size>>16)...), next.String())...)
		r.U[1].awaitStarted(t, 1)
		c.still(t)
		close(release)
		require.Equal(t, 200, c.must(t, "POST").status)
		require.Equal(t, next.nonce, c.want(t, "GET", 200).get("X-Nonce"))
		wait()
		c.close()

		cut := r.dial(t)
		cut.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello")
		r.U[1].awaitStarted(t, 3)
		cut.fin()
		cut.refused(t, 400)
		require.Zero(t, r.aborts())
	})
}
