package ferryman

import (
	"bufio"
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// exchangeOnceH2 returns a function that has one GET served over a kept h2c connection. Neither the
// client nor the upstream allocates.
func exchangeOnceH2(t testing.TB, engine string) func() {
	_, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, func(c net.Conn, _ *bufio.Reader) {
		b, answer := make([]byte, 4096), []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: x\r\n\r\nhello")
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})}))
	c := dial(t, addr)
	c.SetDeadline(time.Time{})
	c.send(http2.ClientPreface)
	fr := http2.NewFramer(c, nil)
	require.NoError(t, fr.WriteSettings())
	require.NoError(t, fr.WriteWindowUpdate(0, 1<<30))
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSize(0)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/x"}, {"user-agent", "x"}, {"accept", "*/*"}} {
		require.NoError(t, enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	id, in := uint32(1), make([]byte, 4096)
	return func() {
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		id += 2
		for n := 0; n < 5 || string(in[n-5:n]) != "hello"; {
			k, err := c.Read(in[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
	}
}

func BenchmarkExchangeH2(b *testing.B) {
	once := exchangeOnceH2(b, "goroutines")
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

// As many PINGs as come in one go have their answers, if the client reads them. On goroutines it is a matter
// of who is faster.
func TestPing_ABurstIsAnswered(t *testing.T) {
	p, addr := startProxy(t, "", testConfig(map[string]string{"/": "127.0.0.1:1"}))
	if p.engine == netloop.Engine(p.goroutines) {
		return
	}
	c := dial(t, addr)
	const n = 990 // as many as are no waste yet; more than may wait before somebody is to send
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	w := http2.NewFramer(&b, nil)
	require.NoError(t, w.WriteSettings())
	for range n {
		require.NoError(t, w.WritePing(false, [8]byte{1}))
	}
	go c.Write(b.Bytes())
	fr := http2.NewFramer(c, c.in)
	for acks := 0; acks < n; {
		f, err := fr.ReadFrame()
		require.NoError(t, err, "after %d", acks)
		if f.Header().Type == http2.FramePing {
			acks++
		}
	}
}
