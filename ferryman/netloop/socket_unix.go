//go:build unix && !linux

package netloop

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canPeek says whether quiet and gone work on this system.
const canPeek = true

// quiet reports whether a socket has nothing to read: no byte, no end of stream, no error. It asks
// poll and not a peek, for a peek takes a reset away from the read that would have met it.
func quiet(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 0
}

// gone reports whether the peer of a socket has closed its sending side or reset it, and whether there
// is an error, such as that of a reset. An end of stream behind unread bytes is not seen here.
func gone(fd int) (gone, broken bool) {
	n, err := peek(fd)
	broken = err != nil && err != unix.EAGAIN
	return broken || n == 0 && err == nil, broken
}

// peek receives a byte and leaves it where it is.
func peek(fd int) (int, error) {
	var b [1]byte
	n, errno := recv(fd, b[:], unix.MSG_PEEK)
	if errno != 0 {
		return n, errno
	}
	return n, nil
}

// unread is how many bytes a socket has that were not read, 64 KiB at most. An end of stream is none.
func unread(fd int) int {
	n, _ := recv(fd, make([]byte, 64<<10), unix.MSG_PEEK)
	return max(n, 0)
}

func recv(fd int, b []byte, flags int) (int, syscall.Errno) {
	for {
		n, _, err := unix.Recvfrom(fd, b, flags|unix.MSG_DONTWAIT)
		if errno, _ := err.(syscall.Errno); errno != unix.EINTR {
			return n, errno
		}
	}
}

func send(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT)
		if errno, _ := err.(syscall.Errno); errno != unix.EINTR {
			return n, errno
		}
	}
}

// boundUnsent is there on Linux only.
func boundUnsent(int) {}
