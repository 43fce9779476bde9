//go:build unix && !linux

package netloop

import "golang.org/x/sys/unix"

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
	for {
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// boundUnsent is there on Linux only.
func boundUnsent(int) {}
