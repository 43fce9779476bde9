package dial_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// failing is an executor whose dials fail in a way that the test says, or work.
type failing struct {
	netloop.Executor
	mu  sync.Mutex
	err map[netip.Addr]error
}

func (f *failing) Dial(to netip.AddrPort, timeout time.Duration, stop *netloop.Stop) (netloop.Conn, error) {
	f.mu.Lock()
	err := f.err[to.Addr()]
	f.mu.Unlock()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: os.NewSyscallError("connect", err)}
	}
	return f.Executor.Dial(to, timeout, stop)
}

func (f *failing) fail(addr string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err[netip.MustParseAddr(addr)] = err
}

// starving is a rig whose executor fails, and what its dialer tells.
func starving(t *testing.T) (r *rig, f *failing, told func() []string) {
	g := netloop.Goroutines(netloop.Options{})
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	f = &failing{Executor: g, err: map[netip.Addr]error{}}
	r = newRig(t, f)
	var mu sync.Mutex
	var lines []string
	tell := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}
	r.d = dial.New(dial.Options{
		Resolver:      r.names.resolver(),
		ShortageBegun: func(resource string, err error) { tell("no " + resource + ": " + err.Error()) },
		ShortageOver:  func(resource string) { tell(resource + " again") },
	})
	t.Cleanup(r.d.Close)
	return r, f, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines
	}
}

func TestDial_TellsAShortageFromAFailureOfTheTarget(t *testing.T) {
	r, f, _ := starving(t)
	counted := map[string]uint64{}
	for errno, resource := range map[syscall.Errno]string{
		syscall.EMFILE: "descriptors", syscall.ENFILE: "descriptors", syscall.ENOBUFS: "memory", syscall.ENOMEM: "memory",
		syscall.EADDRNOTAVAIL: "ports", syscall.ECONNREFUSED: "", syscall.ENETUNREACH: "", syscall.ETIMEDOUT: "",
	} {
		f.fail("127.0.0.1", errno)
		err := r.dial("127.0.0.1:80", patience).err
		require.ErrorIs(t, err, errno)
		require.Equal(t, resource != "", errors.Is(err, dial.ErrShortage), errno)
		counted[resource]++
	}
	for _, resource := range dial.Resources {
		require.Equal(t, counted[resource], r.d.Shortages(resource), resource)
	}
}

// Where one address was not tried for want of something, nothing is known of the target.
func TestDial_AShortageForOneAddressIsOne(t *testing.T) {
	r, f, told := starving(t)
	l := listen(t, "127.0.0.1:0")
	r.names.is(app, "127.0.0.1", "::1")
	f.fail("::1", syscall.ECONNREFUSED)
	f.fail("127.0.0.1", syscall.EMFILE)
	require.ErrorIs(t, r.dial(at(app, portOf(l)), patience).err, dial.ErrShortage)
	f.fail("127.0.0.1", syscall.ECONNREFUSED)
	f.fail("::1", syscall.EMFILE)
	require.ErrorIs(t, r.dial(at(app, portOf(l)), patience).err, dial.ErrShortage)
	f.fail("127.0.0.1", nil)
	require.NoError(t, r.dial(at(app, portOf(l)), patience).err)
	require.EqualValues(t, 2, r.d.Shortages("descriptors"))
	require.Len(t, told(), 1)
}

func TestShortages_AreToldAtTheirBeginningAndTheirEnd(t *testing.T) {
	r, f, told := starving(t)
	l := listen(t, "127.0.0.1:0")
	works := func() {
		f.fail("127.0.0.1", nil)
		require.NoError(t, r.dial(l.Addr().String(), patience).err)
	}
	fails := func(err syscall.Errno) {
		f.fail("127.0.0.1", err)
		require.Error(t, r.dial(l.Addr().String(), patience).err)
	}
	works()
	for range 10 {
		fails(syscall.EMFILE)
		works() // for a moment
	}
	require.Len(t, told(), 1)
	require.Contains(t, told()[0], "no descriptors: dial tcp "+l.Addr().String())
	r.d.Age(dial.Settled)
	fails(syscall.EADDRNOTAVAIL)
	works()
	require.Len(t, told(), 3)
	require.Contains(t, told()[1], "no ports")
	require.Equal(t, "descriptors again", told()[2])
	works()
	require.Len(t, told(), 3)
	r.d.Age(dial.Settled)
	works()
	works()
	require.Equal(t, "ports again", told()[3])
	fails(syscall.EMFILE)
	require.Len(t, told(), 5, "each shortage is told")
}
