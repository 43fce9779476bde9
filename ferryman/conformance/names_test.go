package conformance

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// listenOn listens on a port of a loopback address (0: any), with a backlog.
func listenOn(t testing.TB, ip netip.Addr, port, backlog int) *net.TCPListener {
	t.Helper()
	family, to := syscall.AF_INET, syscall.Sockaddr(&syscall.SockaddrInet4{Port: port})
	if ip.Is4() {
		to.(*syscall.SockaddrInet4).Addr = ip.As4()
	} else {
		family, to = syscall.AF_INET6, &syscall.SockaddrInet6{Port: port, Addr: ip.As16()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	require.NoError(t, syscall.Bind(fd, to))
	require.NoError(t, syscall.Listen(fd, backlog))
	l, err := net.FileListener(f)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

var loopback4, loopback6 = netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()

// silent makes a port of ::1 one that drops SYNs.
func silent(t testing.TB, port int) {
	t.Helper()
	fill(t, listenOn(t, loopback6, port, 0).Addr().String())
}

// fill fills a backlog that is short.
func fill(t testing.TB, addr string) {
	t.Helper()
	for range 20 {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
	}
	require.Fail(t, "the backlog never fills")
}

// on6 is an upstream on ::1, at the same port as another.
func on6(t testing.TB, name string, other *upstream) *upstream {
	t.Helper()
	ln := listenOn(t, loopback6, port(other.addr), 100)
	u := &upstream{name: name, addr: ln.Addr().String(), ln: ln, recordMax: 4 << 20, always: echo}
	u.coroutines.Add(1)
	go u.accept(ln)
	t.Cleanup(u.close)
	return u
}

// named routes /named to a name with an upstream's port.
func named(dns *nameServer, name string, u *upstream) func(*setup) {
	return func(s *setup) {
		s.resolver = asking(dns.addr())
		s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/named", Upstream: fmt.Sprintf("%s:%d", name, port(u.addr))})
	}
}

func TestCase314_NameWithASilentAddressIsReachedByTheOther(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u, dns := newUpstream(t, "U"), newNameServer(t)
		t.Cleanup(u.close)
		silent(t, port(u.addr))
		dns.is("app.test.", "127.0.0.1", "::1") // ::1 comes first (RFC 6724)
		r := newRig(t, m, named(dns, "app.test.", u), func(s *setup) {
			s.cfg.HealthInterval, s.cfg.HealthTimeout = 5*time.Second, 4*time.Second
			s.cfg.FailureThreshold = 1
		})
		for range 3 {
			resp := r.dial(t).do(t, request{path: "/named", fields: []string{"Connection: close"}})
			require.Equal(t, 200, resp.status)
		}
		eventually(t, func() bool { return len(u.checked()) > 0 }, "checks do not get there")
		require.Zero(t, r.sum("ferryman_circuit_transitions_total", "app.test.", `to="open"`))
		require.Equal(t, 1, dns.asked("app.test."), "one query is enough")
	})
}

// The first address is silent for longer than a dial may take: the others share that time.
func TestCase314_AddressesShareAShortTime(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u, dns := newUpstream(t, "U"), newNameServer(t)
		t.Cleanup(u.close)
		silent(t, port(u.addr))
		dns.is("app.test.", "127.0.0.1", "::1")
		r := newRig(t, m, named(dns, "app.test.", u))
		eventually(t, func() bool { // a busy machine may need more
			status := 0
			r.during(t, func(c *config.Config) { c.ConnectTimeout = connectTimeout }, func() {
				status = r.dial(t).do(t, request{path: "/named"}).status
			})
			return status == 200
		}, "the other address is not tried")
	})
}

func TestCase315_ConnectionsGrowOld(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		const age = 100 * time.Millisecond
		r := newRig(t, m, func(s *setup) { s.cfg.UpstreamMaxAge = 0 })
		c := r.dial(t)
		get := func() int { return r.U[1].withNonce(t, c.do(t, request{}).get("X-Nonce")).conn }
		first := get()
		pause(2 * age)
		require.Equal(t, first, get(), "there is no limit")
		r.reload(t, func(c *config.Config) { c.UpstreamMaxAge = age })
		second := get()
		require.NotEqual(t, first, second, "it is too old")
		r.U[1].gone(t, first)
		begun := time.Now()
		for get() == second {
			require.Less(t, time.Since(begun), patience)
		}
		r.U[1].gone(t, second)
		// What runs on it goes on.
		r.U[1].play(func(c *uconn, q *message) bool {
			c.body(q)
			pause(3 * age)
			return c.send(describe(q))
		})
		require.Equal(t, 200, c.do(t, request{}).status)
		old := r.U[1].last(t).conn
		require.NotEqual(t, old, get())
	})
}

// Nobody uses them, and they are closed all the same.
func TestCase315_OldConnectionsThatAreIdleAreClosed(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.UpstreamMaxAge = 50 * time.Millisecond })
		r.get(t, "/")
		r.U[1].goneWithin(t, 0, 10*time.Second)
	})
}

func TestCase315_NameThatMovesIsFollowed(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		before, dns := newUpstream(t, "before"), newNameServer(t)
		t.Cleanup(before.close)
		after := on6(t, "after", before)
		dns.is("app.test.", "127.0.0.1")
		r := newRig(t, m, named(dns, "app.test.", before), func(s *setup) { s.cfg.UpstreamMaxAge = 50 * time.Millisecond })
		c := r.dial(t)
		where := func() string { return c.do(t, request{path: "/named"}).get("X-U") }
		require.Equal(t, "before", where())
		dns.is("app.test.", "::1")
		eventually(t, func() bool { return where() == "after" }, "the old address is used for ever") // an answer holds for 5 s
		require.NotEmpty(t, after.requests())
		require.LessOrEqual(t, dns.asked("app.test."), 3)
	})
}

// The address that a name had before may be another server's by now, which takes the requests of connections that are
// kept: health checks find out where the name leads.
func TestCase315_ChecksFollowANameThatHasMoved(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		before, dns := newUpstream(t, "before"), newNameServer(t)
		t.Cleanup(before.close)
		after := on6(t, "after", before)
		dns.is("app.test.", "127.0.0.1")
		r := newRig(t, m, named(dns, "app.test.", before), func(s *setup) {
			s.cfg.UpstreamMaxAge, s.cfg.HealthInterval, s.cfg.HealthTimeout = 0, checkInterval, checkTimeout
		})
		c := r.dial(t)
		where := func() string { return c.do(t, request{path: "/named"}).get("X-U") }
		require.Equal(t, "before", where())
		dns.is("app.test.", "127.0.0.1", "::1")
		eventually(t, func() bool { return len(after.checked())+len(before.checked()) > 3 }, "no checks")
		require.Equal(t, "before", where())
		require.Len(t, before.connections(), 1+len(before.checked()), "it has this address still: the connection stays")
		dns.is("app.test.", "::1")
		eventually(t, func() bool { return where() == "after" }, "the old address is used for ever") // an answer holds for 5 s
	})
}

func TestCase315_RefreshRetiresConnectionsToAddressesThatANameHasLost(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		before, dns := newUpstream(t, "before"), newNameServer(t)
		t.Cleanup(before.close)
		after := on6(t, "after", before)
		dns.is("app.test.", "127.0.0.1")
		r := newRig(t, m, named(dns, "app.test.", before), func(s *setup) { s.cfg.UpstreamMaxAge = 0 })
		c := r.dial(t)
		do := func(path string) *message { return c.do(t, request{path: path}) }
		require.Equal(t, "before", do("/named").get("X-U"))
		require.Equal(t, 200, do("/").status)
		refresh := func() {
			n := dns.asked("app.test.")
			eventually(t, func() bool { // a query that is under way is joined
				r.proxy.RefreshNames()
				return within(quiet, func() bool { return dns.asked("app.test.") > n })
			}, "nobody asks")
		}
		refresh()
		require.Equal(t, "before", do("/named").get("X-U"))
		require.Len(t, before.connections(), 1, "the address is the same: the connection stays")

		busy := r.dial(t)
		release := make(chan struct{})
		before.play(func(c *uconn, q *message) bool {
			c.body(q)
			<-release
			return c.send(describe(q))
		})
		busy.send(request{path: "/named"}.String())
		eventually(t, func() bool { return len(before.started()) == 3 }, "no request is out")
		dns.is("app.test.", "::1")
		require.Zero(t, len(after.requests()))
		refresh()
		eventually(t, func() bool { return do("/named").get("X-U") == "after" }, "the old address is used still")
		close(release)
		require.Equal(t, "before", busy.must(t, "GET").get("X-U"), "what runs goes on")
		for i := range before.connections() {
			before.gone(t, i)
		}
		// Others are left alone, and so is a name that cannot be found any more.
		require.Equal(t, 200, do("/").status)
		require.Len(t, r.U[1].connections(), 1)
		dns.is("app.test.")
		r.proxy.RefreshNames()
		eventually(t, func() bool { return dns.asked("app.test.") > 2 }, "nobody asks")
		require.Equal(t, "after", do("/named").get("X-U"))
	})
}

func TestCase316_CheckTakesAnyHeadThatARequestWould(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, checks, func(s *setup) { s.cfg.FailureThreshold = 1; s.cfg.DefaultCooldown = time.Hour })
		u := r.U[1]
		head := func(status string, size int) string {
			line := "X-Filler: " + strings.Repeat("x", 1000) + "\r\n"
			return "HTTP/1.1 " + status + "\r\n" + strings.Repeat(line, size/len(line)) + "Content-Length: 0\r\n\r\n"
		}
		for _, good := range []string{head("200 OK", 9<<10), head("404 X", 60<<10), head("103 X", 40<<10) + head("200 OK", 60<<10)} {
			u.onHealth(answers(sick))
			eventually(t, func() bool { return r.state(u) == 1 }, "500 must be a failure")
			u.onHealth(answers(good))
			eventually(t, func() bool { return r.state(u) == 0 }, "%.20q with %d bytes must be up", good, len(good))
		}
		for _, bad := range []string{head("500 X", 9<<10), head("200 OK", 70<<10)} {
			u.onHealth(answers(bad))
			eventually(t, func() bool { return r.state(u) == 1 }, "%.20q with %d bytes must be a failure", bad, len(bad))
			u.onHealth(nil)
			eventually(t, func() bool { return r.state(u) == 0 }, "200 must be up")
		}
	})
}
