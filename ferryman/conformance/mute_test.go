package conformance

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// mute is an upstream that accepts and neither reads nor answers.
func mute(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var held []net.Conn
		for {
			c, err := ln.Accept()
			if err != nil {
				break
			}
			held = append(held, c)
		}
		for _, c := range held {
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-ended })
	return ln.Addr().String()
}

func toMute(addr string) func(*setup) {
	return func(s *setup) {
		s.cfg.Routes = append(s.cfg.Routes, config.Route{Prefix: "/mute", Upstream: addr})
	}
}
