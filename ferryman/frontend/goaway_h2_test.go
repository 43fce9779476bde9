package frontend

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// A connection that comes while the server drains gets the server's preface before the GOAWAY (RFC 9113
// section 3.4), also where the drain gets hold of it before it was greeted.
func TestGoAway_FollowsThePreface(t *testing.T) {
	s := newServer(t, 0)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	raw := s.Goroutines.Adopt(ours)
	c := newConnH2(s, s.Goroutines, raw, raw)
	s.StopAccepting()
	c.mu.Lock()
	c.drain()
	c.mu.Unlock()
	go c.serveAs(newEntry(raw))
	go io.WriteString(theirs, http2.ClientPreface)
	fr := http2.NewFramer(nil, theirs)
	var heard []http2.FrameType
	for len(heard) == 0 || heard[len(heard)-1] != http2.FrameGoAway {
		f, err := fr.ReadFrame()
		require.NoError(t, err)
		heard = append(heard, f.Header().Type)
	}
	require.Equal(t, []http2.FrameType{http2.FrameSettings, http2.FrameWindowUpdate, http2.FrameGoAway}, heard)
}
