//go:build !race

package conformance

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Not under the race detector, which needs stacks of its own size.
//
// TestCase263_IdleTLSConnectionsAreCheap measures some hundred connections in place of 50 000; that
// a second batch costs no more than the aim either is what lets one multiply. A client keeps nothing but its
// socket once it has been served, so that what grows is the proxy's.
func TestCase263_IdleTLSConnectionsAreCheap(t *testing.T) {
	for _, p := range []struct {
		mode  mode
		name  string
		aim   int
		serve func(t *testing.T, c *tls.Conn)
	}{
		{tlsH1, "http/1.1", 20 << 10, serveOnceH1},
		{tlsLoops, "http/1.1", 16 << 10, serveOnceH1},
		{tlsH1, "h2", 40 << 10, serveOnceH2},
		{tlsLoops, "h2", 40 << 10, serveOnceH2},
	} {
		if !slices.Contains(tlsModes(), p.mode) {
			continue // not on this system
		}
		t.Run(p.mode.name+" "+p.name, func(t *testing.T) {
			r := newRig(t, p.mode)
			var sockets []net.Conn
			defer func() {
				for _, s := range sockets {
					s.Close()
				}
			}()
			open := func(n int) {
				for range n {
					nc := r.raw(t)
					sockets = append(sockets, nc)
					c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{p.name}})
					require.NoError(t, c.Handshake())
					p.serve(t, c)
				}
				eventually(t, func() bool { return r.sum("ferryman_connections", "idle") == float64(len(sockets)) }, "not all are idle")
			}
			inUse := func() int { r.forget(); return inUse() }
			n := scaled(150)
			open(20) // what is made once
			empty := inUse()
			open(n)
			first := inUse() - empty
			open(n)
			second := inUse() - empty - first
			t.Logf("%d bytes for each, then %d", first/n, second/n)
			require.Less(t, (first+second)/(2*n), p.aim*5/4, "the aim is %d", p.aim)
			require.Less(t, second/n, p.aim*5/4, "they grow") // the first batch may find stacks that are free
		})
	}
}

// inUse is what the process needs for what is alive, stacks included.
func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

func serveOnceH1(t *testing.T, c *tls.Conn) {
	_, err := io.WriteString(c, request{}.String())
	require.NoError(t, err)
	_, err = newWireReader(c).response("GET")
	require.NoError(t, err)
}

func serveOnceH2(t *testing.T, c *tls.Conn) {
	fr := http2.NewFramer(c, c)
	_, err := io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	h := &h2client{}
	h.en = hpack.NewEncoder(&h.eb)
	require.NoError(t, fr.WriteSettings())
	require.NoError(t, fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h.block(pseudo("GET", "/")...), EndStream: true, EndHeaders: true}))
	for {
		f, err := fr.ReadFrame()
		require.NoError(t, err)
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				require.NoError(t, fr.WriteSettingsAck())
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				return
			}
		case *http2.GoAwayFrame:
			require.Fail(t, fmt.Sprint(f))
		}
	}
}
