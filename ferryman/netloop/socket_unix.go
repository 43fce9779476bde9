//go:build unix

package netloop

import "golang.org/x/sys/unix"

// canPeek says whether quiet and gone work on this system.
const canPeek = true

// quiet reports whether a socket has nothing to read: no byte, no end of stream, no error.
func quiet(fd int) bool {
	_, err := peek(fd)
	return err == unix.EAGAIN
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
