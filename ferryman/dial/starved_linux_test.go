package dial_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/Bunty9/ferryman/ferryman/dial"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// What a whole process lacks needs a process of its own: this binary again, in a role.
const role = "DIAL_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "descriptors":
		withoutDescriptors()
	case "ports":
		withoutPorts()
	default:
		os.Exit(m.Run())
	}
}

// child runs a role to its end, and returns what it has printed.
func child(t *testing.T, name string, attr *syscall.SysProcAttr) ([]string, error) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), role+"="+name), attr
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}

// must is for the roles, which have no test to fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// forBoth runs a role over both engines, with a name server.
func forBoth(body func(name string, ex netloop.Executor, d *dial.Dialer)) {
	s := must(nameServerOn("127.0.0.1:0"))
	s.is(app, "127.0.0.1")
	g := netloop.Goroutines(netloop.Options{})
	loops := must(netloop.Loops(netloop.Options{Loops: 1}))
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	met := make(chan netloop.Executor)
	go loops.Serve(l, func(ex netloop.Executor, c netloop.Conn) {
		c.Close()
		met <- ex
	})
	must(net.Dial("tcp", l.Addr().String())).Close()
	for name, ex := range map[string]netloop.Executor{"goroutines": g, "loops": <-met} {
		d := dial.New(dial.Options{Resolver: s.resolver()})
		body(name, ex, d)
		d.Close()
	}
}

// try dials, and keeps the connection.
func try(ex netloop.Executor, d *dial.Dialer, addr string) error {
	ended := make(chan error)
	ex.Post(func() {
		_, err := d.Dial(ex, dial.Parse(addr), patience, nil)
		ended <- err
	})
	return <-ended
}

func tell(name, what string, err error, d *dial.Dialer) {
	fmt.Println(name, what, errors.Is(err, dial.ErrShortage), d.Shortages("descriptors"), d.Shortages("ports"), err)
}

func withoutDescriptors() {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	forBoth(func(name string, ex netloop.Executor, d *dial.Dialer) {
		limit := unix.Rlimit{Cur: 64, Max: 1024}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			panic(err)
		}
		var files []io.Closer
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			files = append(files, f)
		}
		tell(name, "address", try(ex, d, l.Addr().String()), d)
		tell(name, "name", try(ex, d, at(app, portOf(l))), d)
		for _, f := range files {
			f.Close()
		}
		d.Age(dial.FailedFor)
		tell(name, "again", try(ex, d, at(app, portOf(l))), d)
	})
}

func TestDial_WithoutDescriptorsIsAShortageForNamesToo(t *testing.T) {
	lines, err := child(t, "descriptors", nil)
	require.NoError(t, err)
	require.Len(t, lines, 6)
	for _, line := range lines {
		switch f := strings.Fields(line); f[1] {
		case "address":
			require.Equal(t, []string{"true", "1", "0"}, f[2:5], line)
		case "name":
			require.Equal(t, []string{"true", "2", "0"}, f[2:5], line)
		case "again":
			require.Equal(t, []string{"false", "2", "0", "<nil>"}, f[2:], line)
		}
	}
}

// withoutPorts has a network of its own, with few ports and without IPv6.
func withoutPorts() {
	if err := ownNetwork(); err != nil {
		fmt.Println("no network of its own:", err)
		return
	}
	l := must(net.Listen("tcp", "127.0.0.1:50000"))
	forBoth(func(name string, ex netloop.Executor, d *dial.Dialer) {
		var err error
		for n := 0; n < 100 && err == nil; n++ {
			err = try(ex, d, l.Addr().String())
		}
		tell(name, "ports", err, d)
		tell(name, "source", try(ex, d, "[::1]:50000"), d)
	})
}

// ownNetwork brings up the loopback of a new network namespace.
func ownNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) // it may be off altogether
	return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40015"), 0)
}

// Where there is no IPv6, an address of it is not to be had either, with the same error. That is not for want of ports.
func TestDial_WithoutPortsIsAShortageAndWithoutIPv6IsNone(t *testing.T) {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	lines, err := child(t, "ports", attr)
	if errors.Is(err, syscall.EPERM) || strings.HasPrefix(lines[0], "no network of its own") {
		t.Logf("this user may have no network of its own (%v %v): TestDial_TellsAShortageFromAFailureOfTheTarget is what is left", err, lines)
		return
	}
	require.NoError(t, err)
	require.Len(t, lines, 4)
	for _, line := range lines {
		switch f := strings.Fields(line); f[1] {
		case "ports":
			require.Equal(t, []string{"true", "0", "1"}, f[2:5], line)
		case "source":
			require.Equal(t, []string{"false", "0", "1"}, f[2:5], line)
			require.Contains(t, line, syscall.EADDRNOTAVAIL.Error())
		}
	}
}
