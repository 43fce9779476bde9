package dial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

const app = "app.test."

// rig is a dialer with a name server of the test's own, and an executor.
type rig struct {
	t     testing.TB
	ex    netloop.Executor
	names *nameServer
	d     *dial.Dialer
}

// forEachEngine runs body over every engine of this system.
func forEachEngine(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) {
		g := netloop.Goroutines(netloop.Options{})
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		body(t, newRig(t, g))
	})
	if runtime.GOOS == "linux" {
		t.Run("loops", func(t *testing.T) {
			e, err := netloop.Loops(netloop.Options{Loops: 1})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			body(t, newRig(t, executor(t, e)))
		})
	}
}

func newRig(t testing.TB, ex netloop.Executor) *rig {
	r := &rig{t: t, ex: ex, names: newNameServer(t)}
	r.d = dial.New(dial.Options{Resolver: r.names.resolver()})
	t.Cleanup(r.d.Close)
	return r
}

// executor meets the executor of an engine that has one.
func executor(t testing.TB, e netloop.Engine) netloop.Executor {
	l := listen(t, "127.0.0.1:0")
	met := make(chan netloop.Executor, 1)
	go e.Serve(l, func(ex netloop.Executor, c netloop.Conn) {
		met <- ex
		c.Close()
	})
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	return receive(t, met, "a coroutine")
}

func listen(t testing.TB, addr string) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func receive[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

// outcome is how a dial has ended. A connection is closed, once its address was noted.
type outcome struct {
	to   string
	err  error
	took time.Duration
}

// begin dials on the executor.
func (r *rig) begin(addr string, timeout time.Duration, stop *netloop.Stop) <-chan outcome {
	ended := make(chan outcome, 1)
	r.ex.Post(func() {
		begun := time.Now()
		c, err := r.d.Dial(r.ex, dial.Parse(addr), timeout, stop)
		o := outcome{err: err, took: time.Since(begun)}
		if err == nil {
			o.to = c.RemoteAddr().String()
			c.Close()
		}
		ended <- o
	})
	return ended
}

func (r *rig) dial(addr string, timeout time.Duration) outcome {
	r.t.Helper()
	return receive(r.t, r.begin(addr, timeout, nil), "a dial")
}

// at is a name with the port of a listener.
func at(name string, port int) string { return fmt.Sprintf("%s:%d", name, port) }

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// silent makes a port of ::1 one that drops SYNs: its backlog is full.
func silent(t testing.TB, port int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	to := &syscall.SockaddrInet6{Port: port, Addr: netip.IPv6Loopback().As16()}
	require.NoError(t, syscall.Bind(fd, to))
	require.NoError(t, syscall.Listen(fd, 0))
	for range 20 {
		c, err := net.DialTimeout("tcp", at("[::1]", port), 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the backlog never fills")
}

func TestDial_AddressesNeedNoName(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
			l := listen(t, addr)
			for _, timeout := range []time.Duration{patience, 0, -1} {
				o := r.dial(l.Addr().String(), timeout)
				require.NoError(t, o.err)
				require.Equal(t, l.Addr().String(), o.to)
			}
		}
		l := listen(t, "127.0.0.1:0")
		l.Close()
		err := r.dial(l.Addr().String(), patience).err
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NotErrorIs(t, err, dial.ErrShortage)
	})
}

func TestDial_ABadTargetIsAnError(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "[::1]", "::1:80", "a", "a:", ":80", "a:0"} {
			var op *net.OpError
			require.ErrorAs(t, r.dial(addr, patience).err, &op, addr)
		}
	})
}

func TestDial_FindsANamesAddress(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		r.names.is(app, "127.0.0.1")
		for range 5 {
			require.Equal(t, l.Addr().String(), r.dial(at(app, portOf(l)), patience).to)
		}
		require.Equal(t, 1, r.names.asked(app), "and remembers it")
		r.names.is(app, "::1")
		r.d.Age(dial.RememberedFor - time.Second)
		require.Equal(t, l.Addr().String(), r.dial(at(app, portOf(l)), patience).to)
		r.d.Age(time.Second)
		require.ErrorIs(t, r.dial(at(app, portOf(l)), patience).err, syscall.ECONNREFUSED, "but not for ever")
		require.Equal(t, 2, r.names.asked(app))
	})
}

func TestDial_RemembersForAMomentThatThereIsNoSuchName(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		for range 5 {
			var dns *net.DNSError
			require.ErrorAs(t, r.dial(at(app, portOf(l)), patience).err, &dns)
			require.True(t, dns.IsNotFound)
		}
		require.Equal(t, 1, r.names.asked(app))
		r.names.is(app, "127.0.0.1")
		r.d.Age(dial.FailedFor)
		require.NoError(t, r.dial(at(app, portOf(l)), patience).err)
	})
}

func TestDial_OneQueryIsEnoughForAllWhoAsk(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		r.names.is(app, "127.0.0.1")
		release := r.names.held()
		var dials []<-chan outcome
		for range 50 {
			dials = append(dials, r.begin(at(app, portOf(l)), patience, nil))
		}
		turn := make(chan struct{})
		r.ex.Post(func() { close(turn) })
		receive(t, turn, "the executor, which nobody may hold up")
		release()
		for _, d := range dials {
			require.NoError(t, receive(t, d, "a dial").err)
		}
		require.Equal(t, 1, r.names.asked(app))
	})
}

func TestDial_ALookupTakesNoLongerThanTheDialMay(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		defer r.names.held()()
		o := r.dial(at(app, 80), 100*time.Millisecond)
		require.ErrorIs(t, o.err, os.ErrDeadlineExceeded)
		require.NotErrorIs(t, o.err, dial.ErrShortage)
		require.GreaterOrEqual(t, o.took, 95*time.Millisecond)
		require.Less(t, o.took, 5*time.Second)
	})
}

func TestDial_IsStoppedWhereverItIs(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		l.Close()
		silent(t, portOf(l))
		r.names.is(app, "::1")
		r.names.is("two.test.", "::1", "fe80::1")
		release := r.names.held()
		var lookup, connect, race netloop.Stop
		dials := []<-chan outcome{r.begin(at("held.test.", 80), time.Hour, &lookup)}
		require.Eventually(t, func() bool { return r.names.asked("held.test.") == 1 }, patience, time.Millisecond)
		lookup.Abort()
		require.Error(t, receive(t, dials[0], "the end of a lookup").err)
		release()
		dials = []<-chan outcome{r.begin(at(app, portOf(l)), time.Hour, &connect), r.begin(at("two.test.", portOf(l)), time.Hour, &race)}
		require.Eventually(t, func() bool { return r.names.asked(app)+r.names.asked("two.test.") == 2 }, patience, time.Millisecond)
		connect.Abort()
		race.Abort()
		for _, d := range dials {
			require.Error(t, receive(t, d, "the end of a dial").err)
		}
		require.Error(t, receive(t, r.begin(at(app, 80), time.Hour, &connect), "one that begins later").err)
	})
}

func TestClose_EndsWhatWaitsForAName(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		defer r.names.held()()
		d := r.begin(at(app, 80), time.Hour, nil)
		require.Eventually(t, func() bool { return r.names.asked(app) > 0 }, patience, time.Millisecond)
		r.d.Close()
		require.Error(t, receive(t, d, "a dial").err)
		require.Error(t, r.dial(at("other.test.", 80), time.Hour).err)
	})
}

func TestDial_RacesASilentAddressWithTheNext(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		silent(t, portOf(l))
		r.names.is(app, "127.0.0.1", "::1") // ::1 is tried first (RFC 6724)
		for _, timeout := range []time.Duration{patience, 0, dial.HeadStart / 2} {
			o := r.dial(at(app, portOf(l)), timeout)
			for i := 0; i < 20 && o.err != nil && timeout == dial.HeadStart/2; i++ { // others may use the machine
				o = r.dial(at(app, portOf(l)), timeout)
			}
			require.NoError(t, o.err, "within %v", timeout)
			require.Equal(t, l.Addr().String(), o.to)
			require.Less(t, o.took, dial.HeadStart+2*time.Second)
		}
		require.Eventually(t, func() bool { return connecting(t, portOf(l)) == 0 }, patience, 10*time.Millisecond, "the loser goes on")
	})
}

func TestDial_TriesTheNextAddressAtOnceWhereOneFails(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		r.names.is(app, "127.0.0.1", "::1")
		best := patience // of a few: others may use the machine
		for i := 0; i < 10 && best >= dial.HeadStart; i++ {
			o := r.dial(at(app, portOf(l)), 0)
			require.NoError(t, o.err)
			best = min(best, o.took)
		}
		require.Less(t, best, dial.HeadStart)
	})
}

func TestDial_AllAddressesFail(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		l.Close()
		r.names.is(app, "127.0.0.1", "::1")
		require.ErrorIs(t, r.dial(at(app, portOf(l)), patience).err, syscall.ECONNREFUSED)
		silent(t, portOf(l))
		o := r.dial(at(app, portOf(l)), 300*time.Millisecond)
		require.True(t, errors.Is(o.err, os.ErrDeadlineExceeded) || errors.Is(o.err, syscall.ECONNREFUSED), o.err)
		require.Less(t, o.took, 5*time.Second)
		require.GreaterOrEqual(t, o.took, 295*time.Millisecond, "the silent one has all the time")
	})
}

func TestInterleave_AlternatesBetweenTheFamilies(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "A": "A", "ab": "ab", "aA": "aA", "abAB": "aAbB", "ABCab": "AaBbC", "abcdA": "aAbcd", "AbcdB": "AbBcd", "aABC": "aABC",
	} {
		var addrs []netip.Addr
		for _, ch := range in { // small letters are IPv4
			if ch >= 'a' {
				addrs = append(addrs, netip.AddrFrom4([4]byte{byte(ch)}))
			} else {
				addrs = append(addrs, netip.AddrFrom16([16]byte{byte(ch)}))
			}
		}
		var got string
		for _, a := range dial.Interleave(addrs) {
			got += string(rune(a.AsSlice()[0]))
		}
		require.Equal(t, want, got)
	}
}

func TestResolveAnew_AsksAgainAndKeepsWhatItHasIfThatFails(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		resolve := func(anew bool) (addrs []netip.Addr, err error) {
			done := make(chan struct{})
			r.ex.Post(func() {
				defer close(done)
				if to := dial.Parse(at(app, 80)); anew {
					addrs, err = r.d.ResolveAnew(r.ex, to, patience)
				} else {
					addrs, err = r.d.Resolve(r.ex, to, patience, nil)
				}
			})
			receive(t, done, "an answer")
			return addrs, err
		}
		v4, v6 := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")
		want := func(anew bool, want netip.Addr) {
			t.Helper()
			addrs, err := resolve(anew)
			require.NoError(t, err)
			require.Equal(t, []netip.Addr{want}, addrs)
		}
		r.names.is(app, "127.0.0.1")
		want(true, v4)
		r.names.is(app, "::1")
		want(false, v4)
		want(true, v6)
		want(false, v6)
		r.names.is(app)
		want(true, v6)
		r.d.Age(dial.RememberedFor)
		_, err := resolve(true)
		require.Error(t, err)
	})
}

func TestDialContext_ObeysItsContext(t *testing.T) {
	g := netloop.Goroutines(netloop.Options{})
	defer g.Close()
	r := newRig(t, g)
	l := listen(t, "127.0.0.1:0")
	c, err := r.d.DialContext(t.Context(), g, dial.Parse(l.Addr().String()))
	require.NoError(t, err)
	c.Close()
	l.Close()
	silent(t, portOf(l))
	to := dial.Parse(at("[::1]", portOf(l)))
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*time.Millisecond)
		},
		"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := end(t.Context())
		begun := time.Now()
		_, err := r.d.DialContext(ctx, g, to)
		cancel()
		require.Error(t, err, name)
		require.Less(t, time.Since(begun), 5*time.Second, name)
		_, err = r.d.DialContext(ctx, g, to)
		require.Error(t, err, "it has ended already")
	}
}

// Many at once, with names that come and go, for the race detector.
func TestDial_ManyAtOnce(t *testing.T) {
	forEachEngine(t, func(t *testing.T, r *rig) {
		l := listen(t, "127.0.0.1:0")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		r.names.is(app, "127.0.0.1", "::1")
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				for k := range 5 {
					stop := new(netloop.Stop)
					o := r.begin(at([]string{app, "other.test."}[(i+k)%2], portOf(l)), patience, stop)
					if k == 3 {
						stop.Abort()
					}
					if k == 4 {
						r.d.Age(time.Second)
					}
					<-o
				}
			})
		}
		all.Wait()
	})
}
