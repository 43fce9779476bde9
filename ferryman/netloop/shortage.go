package netloop

import (
	"errors"
	"syscall"
)

// Shortage names what of the process's own was missing when err came about: "descriptors", "memory" or "ports".
// It is empty for everything else, which tells something about a peer.
func Shortage(err error) string {
	for _, s := range shortages {
		if errors.Is(err, s.errno) {
			return s.resource
		}
	}
	return ""
}

var shortages = []struct {
	errno    syscall.Errno
	resource string
}{
	{syscall.EMFILE, "descriptors"},
	{syscall.ENFILE, "descriptors"},
	{syscall.ENOMEM, "memory"},
	{syscall.ENOBUFS, "memory"},
	{syscall.EAGAIN, "memory"}, // connect(2): of the routing cache
	{syscall.ENOSPC, "memory"}, // epoll_ctl(2): of watches
	{syscall.EADDRNOTAVAIL, "ports"},
}

// isShortage reports whether accepting may work again later without anybody's help.
func isShortage(err error) bool {
	return Shortage(err) == "descriptors" || Shortage(err) == "memory"
}

// isTransient reports whether accept failed because of the connection, not of the listener. Linux
// passes errors of the new connection on (accept(2)).
func isTransient(err error) bool {
	for _, e := range []error{
		syscall.ECONNABORTED, syscall.EINTR, syscall.EPROTO, syscall.ENETDOWN, syscall.EHOSTDOWN,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EPERM, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// shortage calls the accept hooks, each once per shortage.
type shortage struct {
	o  *Options
	on bool
}

func (s *shortage) begun(err error) {
	if !s.on && s.o.AcceptPaused != nil {
		s.o.AcceptPaused(err)
	}
	s.on = true
}

func (s *shortage) over() {
	if s.on && s.o.AcceptResumed != nil {
		s.o.AcceptResumed()
	}
	s.on = false
}
