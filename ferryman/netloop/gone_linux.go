package netloop

import "golang.org/x/sys/unix"

// gone reports whether the peer of a socket has closed its sending side or reset it, whatever is
// still unread.
func gone(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}
