package conformance

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A backlog that is full drops the SYN; the one that the kernel sends a second later, while the proxy is paused, finds
// room.
func TestCase321_ConnectThatSucceededDuringAPauseCounts(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		var fd int
		addr := boundSocket(t, func(bound int) error {
			fd = bound
			return syscall.Listen(fd, 0)
		})
		filler, err := net.DialTimeout("tcp", addr, patience)
		require.NoError(t, err)
		defer filler.Close()
		s := outlasted(addr)
		s.Config.ConnectTimeout = 2 * time.Second // long enough to be seen
		p := startProcess(t, m, s)
		c := p.dial(t)
		c.send(request{}.String())
		eventually(t, func() bool { return connecting(t, port(addr)) }, "no dial")
		p.paused(func() {
			accept(t, fd) // the filler
			up := accept(t, fd)
			pause(s.Config.ConnectTimeout)
			_, err := io.WriteString(up, ok("in time"))
			require.NoError(t, err)
		})
		require.Equal(t, "in time", string(c.want(t, "GET", 200).body))
	})
}

// accept takes a connection from a listening socket.
func accept(t testing.TB, fd int) net.Conn {
	t.Helper()
	got, _, err := syscall.Accept(fd)
	require.NoError(t, err)
	f := os.NewFile(uintptr(got), "accepted")
	defer f.Close()
	c, err := net.FileConn(f)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// connecting reports whether somebody's SYN to a port is not answered.
func connecting(t testing.TB, to int) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == "02" && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", to)) {
			return true
		}
	}
	return false
}
