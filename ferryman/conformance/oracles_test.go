package conformance

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain makes the certificate, runs everything and looks for residue of the whole process: goroutines
// that outlive their proxy carry its label in the dump.
func TestMain(m *testing.M) {
	if spec := os.Getenv(childVariable); spec != "" {
		if err := child(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "conformance")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if testCert, err = makeCert(dir, "first"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// Most of what runs here waits: more at once than there are processors.
		flag.Parse()
		fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
		if f := flag.Lookup("test.parallel"); !fuzzing && f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
			_ = f.Value.Set(strconv.Itoa(6 * runtime.GOMAXPROCS(0)))
		}
		goroutines, files := runtime.NumGoroutine(), descriptors()
		code := m.Run()
		if code == 0 && !within(5*time.Second, func() bool {
			return runtime.NumGoroutine() <= goroutines+8 && descriptors() <= files+8
		}) {
			fmt.Fprintf(os.Stderr, "residue: %d goroutines (%d at the start), %d descriptors (%d at the start)\n",
				runtime.NumGoroutine(), goroutines, descriptors(), files)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
		return code
	}())
}

// descriptors counts open files; 0 where the system does not tell.
func descriptors() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d)
}

// finish asserts the oracles and takes the rig down. It runs after every case.
func (r *rig) finish() {
	t := r.t
	r.mu.Lock()
	clients := slices.Clone(r.clients)
	r.mu.Unlock()
	for _, c := range clients {
		if !c.closed {
			c.close()
		}
	}
	if !r.noVerdicts {
		last := r.awaitIdle(t)
		if !within(5*time.Second, func() bool { return r.goroutines() <= r.atRest() }) {
			assert.Failf(t, "O5: goroutines left over", "%d, at rest %d\n%s", r.goroutines(), r.atRest(), r.stacks())
		}
		if !r.reloaded {
			assert.GreaterOrEqual(t, int64(sum(last, "ferryman_requests_total")), r.finals.Load(), "responses that were not counted")
		}
	}
	r.shutdown(t)
	for _, u := range r.U[1:] {
		assert.True(t, u.end(), "%s: a script does not end", u.name)
	}
	for _, u := range r.U[1:] {
		u.nothingSmuggled(t)
	}
	for _, c := range clients {
		c.nothingPoisoned(t)
		for _, m := range c.own {
			ownReply(t, m)
		}
	}
	r.log.noPanic(t)
	if t.Failed() {
		text := r.log.text()
		t.Logf("log of the proxy:\n%s", text[max(0, len(text)-4<<10):])
	}
}

// shutdown drains the proxy once and insists that it leaves nothing behind.
func (r *rig) shutdown(t testing.TB) {
	r.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := r.proxy.Shutdown(ctx)
		if !r.noVerdicts {
			assert.NoError(t, err, "shutdown of an idle proxy")
		}
		assert.NoError(t, r.proxy.Close())
		select {
		case err = <-r.served:
			assert.NoError(t, err, "Serve must end with nil after Shutdown")
		case <-time.After(patience):
			assert.Fail(t, "Serve does not end")
		}
		if !within(5*time.Second, func() bool { return len(r.sockets()) == 0 }) {
			assert.Failf(t, "O5: sockets outlive Close", "%v", r.sockets())
		}
	})
}

// awaitIdle waits until the gauges are back at rest: no client connection, nothing in use upstream. It
// returns the page that said so.
func (r *rig) awaitIdle(t testing.TB) map[string]float64 {
	t.Helper()
	var m map[string]float64
	ok := within(patience, func() bool {
		m = r.metrics()
		return sum(m, "ferryman_connections") == 0 && sum(m, "ferryman_upstream_connections", `state="in_use"`) == 0
	})
	if !ok {
		assert.Failf(t, "O5: gauges not back at rest", "connections %v, in use %v\n%s", sum(m, "ferryman_connections"),
			sum(m, "ferryman_upstream_connections", `state="in_use"`), r.stacks())
	}
	return m
}

// atRest is how many goroutines an idle proxy may have: a health checker for each upstream, and a few for
// listener, loops and housekeeping.
func (r *rig) atRest() int {
	ups := map[string]bool{}
	for _, route := range r.cfg.Routes {
		ups[route.Upstream] = true
	}
	return len(ups) + 10
}

// goroutines counts those that carry the rig's label: what New, Serve and their offspring started.
// Coroutines that an event loop keeps for the next connection do not count.
func (r *rig) goroutines() int {
	n := 0
	for _, s := range r.labelled() {
		count, _, _ := strings.Cut(s, " @")
		c, _ := strconv.Atoi(strings.TrimSpace(count))
		n += c
	}
	return n
}

func (r *rig) stacks() string { return strings.Join(r.labelled(), "\n\n") }

func (r *rig) labelled() []string {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	var mine []string
	for s := range strings.SplitSeq(b.String(), "\n\n") {
		idle := strings.Contains(s, "netloop.(*coroutine).body") && strings.Count(s, "netloop.") == 1
		if strings.Contains(s, fmt.Sprintf(`"rig":%q`, r.id)) && !idle {
			mine = append(mine, s)
		}
	}
	return mine
}

// sockets lists the TCP sockets of this process that belong to the proxy: accepted ones, by the port
// that it listens on, and dialled ones, by the ports of the upstreams.
func (r *rig) sockets() []string {
	listen := port(r.addr)
	ups := map[int]bool{}
	for _, u := range r.U[1:] {
		ups[port(u.addr)] = true
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // this system does not tell
	}
	var found []string
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		remote, err := syscall.Getpeername(fd)
		if err != nil {
			continue
		}
		local, err := syscall.Getsockname(fd)
		if err == nil && (sockPort(local) == listen || ups[sockPort(remote)]) {
			found = append(found, fmt.Sprintf("descriptor %d: port %d to port %d", fd, sockPort(local), sockPort(remote)))
		}
	}
	return found
}

func sockPort(sa syscall.Sockaddr) int {
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return sa.Port
	case *syscall.SockaddrInet6:
		return sa.Port
	}
	return 0
}

func port(addr string) int {
	p, _ := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:])
	return p
}

// nothingSmuggled is O1: every connection's log is a row of strict requests that ferryman framed,
// the last one possibly cut, and none of them was hidden in another.
func (u *upstream) nothingSmuggled(t testing.TB) {
	for _, c := range u.connections() {
		c.mu.Lock()
		log, off, check := c.log, c.off, c.check
		c.mu.Unlock()
		if off || check {
			continue
		}
		w := newWireReader(bytes.NewReader(log))
		for {
			q, err := w.request()
			if err == io.EOF {
				break
			}
			if q != nil && q.fields != nil {
				forwarded(t, q)
			}
			if err == nil {
				continue
			}
			// A body may be cut; a head goes out in one piece, so what is no whole head is a stray byte.
			stray := errors.Is(err, errSyntax) || q == nil || q.framing == ""
			assert.False(t, stray, "O1: %s connection %d: %v\n%q", u.name, c.id, err, clip(string(log)))
			break
		}
	}
}

var goodFraming = []string{"none", "length", "chunked"}

// forwarded asserts what is true of every request that ferryman sends.
func forwarded(t testing.TB, q *message) {
	assert.NotContains(t, q.target, "SMUGGLED", "O1: a smuggled request: %q", q.line)
	assert.Len(t, q.values("Host"), 1, "O1: Host in %q", q.lines())
	assert.Len(t, q.values("X-Forwarded-For"), 1, "O1: X-Forwarded-For in %q", q.lines())
	assert.Len(t, q.values("X-Forwarded-Proto"), 1, "O1: X-Forwarded-Proto in %q", q.lines())
	assert.Contains(t, strings.Join(q.values("Via"), ", "), "1.1 ferryman", "O1: Via in %q", q.lines())
	assert.Contains(t, goodFraming, q.framing)
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Proxy", "Proxy-Authorization"} {
		assert.False(t, q.has(name), "O1: %s in %q", name, q.lines())
	}
	assert.Empty(t, q.trailers, "O1: request trailers are never forwarded")
	if q.target != "*" {
		assert.True(t, strings.HasPrefix(q.target, "/"), "O1: target %q", q.target)
	}
}

// nothingPoisoned is O2: no planted bytes, no nonce that this client did not send.
func (c *client) nothingPoisoned(t testing.TB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.False(t, poisoned(c.got), "O2: poison reached a client: %q", clip(string(c.got)))
	sent := noncesIn(c.sent)
	for n := range noncesIn(c.got) {
		assert.True(t, sent[n] || len(c.sent) >= captureMax, "O2: a client got the answer %s of somebody else", n)
	}
}

var leaks = regexp.MustCompile(`127\.0\.0\.1|\[::1\]|dial tcp|goroutine|runtime|EOF|errno|syscall|refused|timeout:`)

// ownReply is O6, for a response that ferryman made itself. The method is not needed: a body that was
// sent to HEAD would have broken the next response.
func ownReply(t testing.TB, m *message) {
	t.Helper()
	assert.Len(t, m.values("Date"), 1, "O6: Date in %q", m.lines())
	assert.Equal(t, []string{"text/plain; charset=utf-8"}, m.values("Content-Type"), "O6: %q %q", m.line, m.lines())
	assert.Len(t, m.values("Content-Length"), 1, "O6: %q %q", m.line, m.lines())
	assert.False(t, m.has("Transfer-Encoding"), "O6: %q", m.lines())
	assert.False(t, m.has("Server"), "O6: %q", m.lines())
	text := strings.Join(m.lines(), "\n") + "\n" + string(m.body)
	assert.NotRegexp(t, leaks, text, "O6: an internal matter in an own reply")
}

// own asserts status and text of a reply that ferryman made itself.
func own(t testing.TB, m *message, status int, body string) {
	t.Helper()
	require.Equal(t, status, m.status, "%q %q", m.line, m.body)
	ownReply(t, m)
	if body != "" {
		require.Equal(t, body, strings.TrimSuffix(string(m.body), "\n"))
	}
}
