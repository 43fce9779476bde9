package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// smuggled is the request that must never be seen by an upstream: 35 bytes, hex 23.
const smuggled = "GET /SMUGGLED HTTP/1.1\r\nHost: a\r\n\r\n"

// poison is the response that must never be seen by a client.
const poison = "HTTP/1.1 200 OK\r\nX-Poison: 1\r\nContent-Length: 6\r\n\r\npoison"

// label makes a short subtest name of arbitrary bytes.
func label(s string) string {
	q := fmt.Sprintf("%.60q", s)
	return strings.ReplaceAll(q[1:len(q)-1], "/", "|")
}

// whole and heads count the requests that have reached any upstream.
func (r *rig) whole() int {
	n := 0
	for _, u := range r.U[1:] {
		n += len(u.requests())
	}
	return n
}

func (r *rig) heads() int {
	n := 0
	for _, u := range r.U[1:] {
		n += len(u.started())
	}
	return n
}

// refused asserts oracle O3 on a reply that is due on c: one of the statuses, Connection: close,
// then FIN and nothing else.
func (c *client) refused(t testing.TB, statuses ...int) *message {
	t.Helper()
	m, err := c.response("GET")
	require.NoError(t, err, "a refusal must be a whole reply")
	require.Contains(t, statuses, m.status, "%q", m.body)
	ownReply(t, m)
	require.Equal(t, []string{"close"}, m.values("Connection"))
	c.closedByPeer(t)
	return m
}

// refuses sends raw bytes over a fresh connection, with a smuggled request behind them, and asserts
// that they are refused before any upstream hears of them.
func (r *rig) refuses(t testing.TB, raw string, statuses ...int) {
	t.Helper()
	r.refusesExactly(t, raw+smuggled, statuses...)
}

// refusesExactly is refuses without the smuggled request, for input that is cut.
func (r *rig) refusesExactly(t testing.TB, raw string, statuses ...int) {
	t.Helper()
	if len(statuses) == 0 {
		statuses = []int{400}
	}
	before := r.heads()
	c := r.dial(t)
	defer c.close()
	wait := c.sendAside(raw)
	c.refused(t, statuses...)
	wait()
	require.Equal(t, before, r.heads(), "an upstream was asked")
}

// refusesBody is refuses for input whose head is good: an upstream may have seen the head, but no
// whole request, and the connection that carried it ends.
func (r *rig) refusesBody(t testing.TB, raw string) {
	t.Helper()
	r.refusesBodyExactly(t, raw+smuggled)
}

func (r *rig) refusesBodyExactly(t testing.TB, raw string) {
	t.Helper()
	before, heads := r.whole(), r.allHeads()
	c := r.dial(t)
	defer c.close()
	wait := c.sendAside(raw)
	c.refused(t, 400)
	wait()
	require.Equal(t, before, r.whole(), "a broken request was completed")
	for _, q := range r.allHeads() {
		if !slices.Contains(heads, q) {
			r.upstream(q.up).gone(t, q.conn)
		}
	}
	require.Equal(t, before, r.whole(), "a broken request was completed")
}

func (r *rig) allHeads() []*message {
	var all []*message
	for _, u := range r.U[1:] {
		all = append(all, u.started()...)
	}
	return all
}

func (r *rig) upstream(name string) *upstream {
	for _, u := range r.U[1:] {
		if u.name == name {
			return u
		}
	}
	return nil
}

// serves sends raw bytes that hold one good request over a fresh connection and returns what the
// client got and what the upstream saw. Exactly one request must have reached exactly one upstream.
func (r *rig) serves(t testing.TB, raw string) (*message, *message) {
	t.Helper()
	c := r.dial(t)
	defer c.close()
	return c.serves(t, raw)
}

func (c *client) serves(t testing.TB, raw string) (*message, *message) {
	t.Helper()
	r := c.r
	heads, whole := r.allHeads(), r.whole()
	wait := c.sendAside(raw)
	method, _, _ := strings.Cut(strings.TrimLeft(raw, "\r\n"), " ")
	m := c.want(t, method, 200)
	wait()
	after := r.allHeads()
	require.Len(t, after, len(heads)+1, "exactly one request must reach an upstream")
	require.Equal(t, whole+1, r.whole(), "the request must arrive whole")
	for _, q := range after {
		if !slices.Contains(heads, q) {
			return m, q
		}
	}
	return m, nil
}

// fails502 plays an answer that must become 502: on U1, with the circuit closed before. The upstream
// connection must end and exactly one failure count. The threshold must be 1.
func (r *rig) fails502(t testing.TB, h handler) {
	t.Helper()
	r.closeCircuit(t)
	u := r.U[1]
	opened, heads := r.transitions(u, "open"), len(u.started())
	c := r.dial(t)
	defer c.close()
	u.play(h)
	own(t, c.do(t, request{m: "POST", body: "x"}), 502, "bad gateway")
	q := u.awaitStarted(t, heads+1)
	u.gone(t, q.conn)
	require.Equal(t, opened+1, r.transitions(u, "open"), "one failure must count")
	require.Len(t, u.started(), heads+1, "never sent twice")
}

// threshold1 lets every failure open the circuit for a moment: failures are counted by transitions.
func threshold1(s *setup) {
	s.cfg.FailureThreshold = 1
	s.cfg.DefaultCooldown = 1e6
}

// closeCircuit sends requests to U1 until one is served.
func (r *rig) closeCircuit(t testing.TB) {
	t.Helper()
	r.heal(t, "/", r.U[1])
}

// heal sends GETs until the upstream's circuit is closed.
func (r *rig) heal(t testing.TB, path string, u *upstream) {
	t.Helper()
	require.Zero(t, u.unplayed(), "an answer of an earlier step was not used")
	eventually(t, func() bool {
		c, err := r.tryDial(clientTLS, 0)
		if err != nil {
			return false
		}
		defer c.close()
		c.send(request{path: path}.String())
		m, err := c.response("GET")
		return err == nil && m.status == 200 && r.state(u) == 0
	}, "the circuit of %s does not close", u.name)
}

// neutral runs step and asserts that it was neither a failure nor a success for u: with a threshold of
// 2, one failure before and one after it must open the circuit, and the step alone must not.
type verdict int

const (
	failure verdict = iota
	success
	neutral
)

func (v verdict) String() string { return [...]string{"failure", "success", "neutral"}[v] }

// verdictOf tells how step counted, seen from outside. The threshold must be 2 and path must lead to u.
func (r *rig) verdictOf(t testing.TB, path string, u *upstream, step func()) verdict {
	t.Helper()
	r.heal(t, path, u)
	r.fail(t, path, u)
	step()
	r.awaitNothingInUse(t, u)
	if r.state(u) != 0 {
		return failure
	}
	r.fail(t, path, u)
	if r.state(u) != 0 {
		return neutral
	}
	return success
}

// fail makes one request fail at u, without a doubt: it passes a 503.
func (r *rig) fail(t testing.TB, path string, u *upstream) {
	t.Helper()
	u.play(reply("HTTP/1.1 503 Not Now\r\nX-U: x\r\nContent-Length: 0\r\n\r\n"))
	c := r.dial(t)
	defer c.close()
	m := c.do(t, request{path: path})
	require.Equal(t, 503, m.status)
	require.True(t, m.has("X-U"), "the 503 must be the upstream's, not ferryman's: circuit %d", r.state(u))
}

func (r *rig) awaitNothingInUse(t testing.TB, u *upstream) {
	t.Helper()
	eventually(t, func() bool {
		return r.sum("ferryman_upstream_connections", `state="in_use"`, u.addr) == 0
	}, "connections to %s stay in use", u.name)
}

// threshold2 is for verdictOf.
func threshold2(s *setup) {
	s.cfg.FailureThreshold = 2
	s.cfg.DefaultCooldown = 1e6
}
