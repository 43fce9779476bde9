//go:build !linux

package echo

import "net"

// fronts are Linux's.
type fronts struct{}

func (s *Server) newFront(l net.Listener) (net.Listener, error) {
	return listener{Listener: l, s: s}, nil
}

func (s *Server) stopFronts() {}
