package conformance

import (
	"io"
	"net"
	"os"
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
		eventually(t, func() bool { return sockets(t, addr, synSent) > 0 }, "no dial")
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
