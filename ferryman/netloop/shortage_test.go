package netloop_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

func TestShortage_IsWhatThisProcessLacks(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EMFILE: "descriptors", syscall.ENFILE: "descriptors",
		syscall.ENOBUFS: "memory", syscall.ENOMEM: "memory", syscall.EAGAIN: "memory", syscall.ENOSPC: "memory",
		syscall.EADDRNOTAVAIL: "ports",
		syscall.ECONNREFUSED:  "", syscall.ECONNRESET: "", syscall.ETIMEDOUT: "", syscall.EHOSTUNREACH: "", syscall.ENETUNREACH: "",
		syscall.EACCES: "", syscall.EPERM: "", syscall.EINVAL: "",
	} {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
		require.Equal(t, want, netloop.Shortage(err), errno)
	}
	require.Empty(t, netloop.Shortage(os.ErrDeadlineExceeded))
	require.Empty(t, netloop.Shortage(net.ErrClosed))
	require.Empty(t, netloop.Shortage(nil))
}
