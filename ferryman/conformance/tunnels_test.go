package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// execHead and execBody are what a container engine's client sends to run a command.
const (
	execHead = "POST /ws/exec/1/start HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
	execBody = `{"Detach":false,"Tty":false}`
)

const switchingToTCP = "HTTP/1.1 101 UPGRADED\r\nX-U: x\r\nContent-Type: application/vnd.raw\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

// runs answers an upgrade once its body was read whole, and echoes what follows.
func runs(c *uconn, q *message) bool {
	c.unrecorded()
	if c.body(q) && c.send(switchingToTCP) {
		echoBytes(c)
	}
	return false
}

// echoes insists that what c sends comes back, then that the tunnel ends as c ends it.
func (c *client) echoes(t testing.TB, early string) {
	t.Helper()
	c.send("through the tunnel")
	b := make([]byte, len(early)+len("through the tunnel"))
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	_, err := io.ReadFull(c.w.br, b)
	require.NoError(t, err)
	require.Equal(t, early+"through the tunnel", string(b))
	c.fin()
	c.closedByPeer(t)
}

func TestCase302_UpgradeWithABody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		length := fmt.Sprintf("Content-Length: %d\r\n", len(execBody))
		chunks := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(execBody), execBody)
		for _, row := range []struct {
			name, early string
			parts       []string
		}{
			{"in one piece", "", []string{execHead + length + "\r\n" + execBody}},
			{"head first", "", []string{execHead + length + "\r\n", execBody[:5], execBody[5:]}},
			{"chunked", "", []string{execHead + chunks}},
			{"early bytes", "early", []string{execHead + length + "\r\n" + execBody + "early"}},
			{"early bytes behind chunks", smuggled, []string{execHead + chunks + smuggled}},
			{"early bytes of their own", "early", []string{execHead + length + "\r\n", execBody[:5], execBody[5:] + "ear", "ly"}},
		} {
			t.Run(row.name, func(t *testing.T) {
				require.Equal(t, success, r.verdictOf(t, "/ws", r.U[4], func() {
					r.U[4].play(runs)
					c := r.dial(t)
					c.send(row.parts...)
					resp := c.must(t, "POST")
					require.Equal(t, 101, resp.status)
					require.Equal(t, "tcp", resp.get("Upgrade"))
					q := r.U[4].last(t)
					require.Equal(t, execBody, string(q.body))
					require.Equal(t, "tcp", q.get("Upgrade"))
					c.echoes(t, row.early)
					r.U[4].gone(t, q.conn)
				}))
			})
		}
	})
}

func TestCase302_BodyOfAnUpgradeThatIsAskedFor(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.U[4].play(func(c *uconn, q *message) bool {
			c.unrecorded()
			return c.send("HTTP/1.1 100 Continue\r\n\r\n") && runs(c, q)
		})
		c := r.dial(t)
		c.send(fmt.Sprintf(execHead+"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(execBody)))
		head, err := c.w.responseHead("POST")
		require.NoError(t, err)
		require.Equal(t, 100, head.status)
		c.send(execBody)
		require.Equal(t, 101, c.must(t, "POST").status)
		c.echoes(t, "")
	})
}

// An upstream may switch at once. What it sends then comes through, and so does the rest of the body, before
// what belongs to the tunnel.
func TestCase302_SwitchBeforeTheBodyWasRead(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		const size = 1 << 20
		r.U[4].play(func(c *uconn, q *message) bool {
			c.unrecorded()
			if c.send(switchingToTCP+"hello") && c.body(q) {
				echoBytes(c)
			}
			return false
		})
		c := r.dial(t)
		c.send(fmt.Sprintf(execHead+"Content-Length: %d\r\n\r\nfirst", size))
		require.Equal(t, 101, c.must(t, "POST").status)
		b := make([]byte, 5)
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		_, err := io.ReadFull(c.w.br, b)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))
		rest := strings.Repeat("b", size-5)
		c.send(rest[:size/2], rest[size/2:]+"early")
		c.echoes(t, "early")
		require.EqualValues(t, size, r.U[4].last(t).bodyLen)
	})
}

func TestCase302_BodyThatIsCutAfterTheSwitch(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, cut := range []func(*client){(*client).fin, (*client).rst} {
			r.U[4].play(func(c *uconn, q *message) bool {
				c.unrecorded()
				return c.send(switchingToTCP) && c.body(q)
			})
			c := r.dial(t)
			c.send(execHead + "Content-Length: 1000\r\n\r\nfirst")
			require.Equal(t, 101, c.must(t, "POST").status)
			cut(c)
			r.U[4].gone(t, len(r.U[4].connections())-1)
			r.awaitNothingInUse(t, r.U[4])
			require.Empty(t, r.U[4].requests())
		}
	})
}

func TestCase302_UpgradeWithABodyThatIsRefused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, status := range []string{"200 OK", "409 Conflict"} {
			r.U[4].play(func(c *uconn, q *message) bool {
				c.unrecorded()
				return c.body(q) && c.send("HTTP/1.1 "+status+"\r\nX-U: x\r\nContent-Length: 2\r\n\r\nno")
			})
			heads := r.heads()
			c := r.dial(t)
			c.send(fmt.Sprintf(execHead+"Content-Length: %d\r\n\r\n%s%s", len(execBody), execBody, smuggled))
			resp := c.must(t, "POST")
			require.Equal(t, status, resp.line[9:])
			require.Equal(t, "no", string(resp.body))
			require.False(t, resp.has("Upgrade"))
			c.closedByPeer(t)
			require.Equal(t, heads+1, r.heads(), "the bytes behind it are no request")
		}
	})
}

func TestCase302_UpgradeWithABodyIsNotRepeated(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		require.Equal(t, 200, r.get(t, "/ws").status)
		r.U[4].play(takeAndLeave)
		heads := r.heads()
		c := r.dial(t)
		c.send(strings.Replace(execHead, "POST", "PUT", 1) + "Content-Length: 1\r\n\r\nx")
		own(t, c.must(t, "PUT"), 502, "bad gateway")
		require.Equal(t, heads+1, r.heads())
	})
}

// openTunnel opens a tunnel to f.
func (r *rig) openTunnel(t testing.TB, f func(*uconn)) *client {
	t.Helper()
	r.U[4].play(switches(f))
	c := r.dial(t)
	require.Equal(t, 101, c.do(t, request{path: "/ws", fields: upgradeLines}).status)
	return c
}

func TestCase323_IdleTunnelEnds(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { soonIdle(&s.cfg) })
		for _, half := range []bool{false, true} {
			release := make(chan struct{})
			c := r.openTunnel(t, func(c *uconn) { c.drain(); <-release })
			start := time.Now()
			if half {
				c.fin() // the other direction is idle, too
			}
			b, _ := c.end()
			require.Empty(t, b)
			require.GreaterOrEqual(t, time.Since(start), bodyIdle*8/10)
			close(release)
			r.U[4].gone(t, r.U[4].last(t).conn)
			r.awaitNothingInUse(t, r.U[4])
		}
	})
}

// tunnelIdle is long enough for a beat to come in time on a machine that is busy.
const tunnelIdle, tunnelBeat = 1500 * time.Millisecond, 150 * time.Millisecond

// beats are as many as go on for twice the limit.
const beats = int(2 * tunnelIdle / tunnelBeat)

func longIdle(s *setup) { s.cfg.BodyIdleTimeout = tunnelIdle }

func (c *uconn) beat() {
	for range beats {
		pause(tunnelBeat)
		c.send("x")
	}
}

// untilDone reads what a tunnel brings, up to the word, and insists that the tunnel ends then.
func (c *client) untilDone(t testing.TB) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	got, err := c.w.br.ReadString('e')
	require.NoError(t, err)
	require.Equal(t, "done", strings.TrimLeft(got, "x"))
	b, _ := c.end()
	require.Empty(t, b)
}

func TestCase323_TrafficDownKeepsATunnel(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, longIdle)
		c := r.openTunnel(t, func(c *uconn) {
			c.beat()
			c.send("done")
			c.drain()
		})
		c.untilDone(t)
	})
}

func TestCase323_TrafficUpKeepsATunnel(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, longIdle)
		c := r.openTunnel(t, func(c *uconn) {
			_, _ = io.CopyN(io.Discard, c.w.br, int64(beats))
			c.send("done")
			c.drain()
		})
		c.trickle(tunnelBeat, strings.Repeat("x", beats))
		c.untilDone(t)
	})
}

func TestCase323_TunnelWhoseUpstreamTakesNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, longIdle)
		release := make(chan struct{})
		defer close(release)
		c := r.openTunnel(t, func(c *uconn) {
			_ = c.conn.SetReadBuffer(16 << 10)
			c.beat()
			c.send("done")
			<-release
		})
		block := strings.Repeat("b", 64<<10)
		wait := c.sendAside(blocks(block, 1600)...)
		c.untilDone(t) // bytes the other way kept it, and do so no more
		wait()
		require.Less(t, c.bytesSent.Load(), int64(1600*len(block)))
	})
}

// A tunnel both ends of which are stuck notices a reset of either.
func TestCase298_ResetOfATunnelThatIsStuck(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		release := make(chan struct{})
		defer close(release)
		stuck := func(c *uconn) {
			_ = c.conn.SetReadBuffer(16 << 10)
			<-release
		}
		c := r.openTunnel(t, stuck)
		c.stuffed(t, "")
		left := time.Now()
		c.rst()
		r.awaitNothingInUse(t, r.U[4])
		require.Less(t, time.Since(left), promptly)

		c = r.openTunnel(t, func(c *uconn) {
			block := strings.Repeat("b", 64<<10)
			for {
				_ = c.conn.SetWriteDeadline(time.Now().Add(5 * quiet))
				if !c.send(block) {
					break
				}
			}
			c.reset()
		})
		r.awaitNothingInUse(t, r.U[4])
		c.close()
	})
}
