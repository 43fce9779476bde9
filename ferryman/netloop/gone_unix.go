//go:build unix && !linux

package netloop

import "golang.org/x/sys/unix"

// gone reports whether the peer of a socket has closed its sending side or reset it. An end of
// stream behind unread bytes is not seen here.
func gone(fd int) bool {
	n, err := peek(fd)
	return n == 0 && err == nil || err != nil && err != unix.EAGAIN
}
