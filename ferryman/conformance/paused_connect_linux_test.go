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

// A backlog that is full drops the SYN; one that the kernel sends again, while the proxy is paused, finds room.
func TestCase321_ConnectThatSucceededDuringAPauseCounts(t *testing.T) {
	rounds(t, func(t *testing.T, m mode) bool {
		var fd int
		addr := boundSocket(t, func(bound int) error {
			fd = bound
			return syscall.Listen(fd, 0)
		})
		limit := syscall.Timeval{Sec: int64(patience / time.Second)}
		require.NoError(t, syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit))
		filler, err := net.DialTimeout("tcp", addr, patience)
		require.NoError(t, err)
		defer filler.Close()
		s := unlimited(addr)
		s.Config.ConnectTimeout = outlasted
		p := startProcess(t, m, s)
		c := p.dial(t)
		begun := time.Now()
		c.send(request{}.String())
		if !within(outlasted, func() bool { return sockets(t, addr, synSent) > 0 }) || !p.paused(begun, outlasted, func() {
			accept(t, fd) // the filler
			up := accept(t, fd)
			pause(outlasted)
			_, err := io.WriteString(up, ok("in time"))
			require.NoError(t, err)
		}) {
			return false
		}
		require.Equal(t, "in time", string(c.want(t, "GET", 200).body))
		return true
	})
}

// accept takes a connection from a listening socket.
func accept(t testing.TB, fd int) net.Conn {
	t.Helper()
	got, _, err := syscall.Accept(fd)
	for err == syscall.EINTR {
		got, _, err = syscall.Accept(fd)
	}
	require.NoError(t, err)
	f := os.NewFile(uintptr(got), "accepted")
	defer f.Close()
	c, err := net.FileConn(f)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}
