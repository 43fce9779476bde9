package ferryman

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// A connection that comes while the proxy drains hears the server's preface before the goodbye (RFC 9113
// section 3.4), also where the drain gets hold of it before it was greeted.
func TestGoodbye_FollowsThePreface(t *testing.T) {
	p, _ := startProxy(t, "goroutines", testConfig(map[string]string{"/": "127.0.0.1:1"}))
	ours, theirs := net.Pipe()
	defer theirs.Close()
	raw := p.goroutines.Adopt(ours)
	c := newClientH2(p, p.goroutines, raw, raw)
	p.clients.draining.Store(true)
	c.mu.Lock()
	c.drain()
	c.mu.Unlock()
	go c.serveAs(newClient(raw))
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
