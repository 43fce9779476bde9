package ferryman

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framesOf makes frames of arbitrary bytes: each takes type, flags, stream and length from the
// first four and its payload from what follows, so that a fuzzer need not learn lengths.
func framesOf(b []byte) (wire []byte) {
	for len(b) >= 4 {
		n := min(int(b[3]), len(b)-4)
		wire = append(wire, 0, 0, byte(n), b[0]%12, b[1])
		wire = binary.BigEndian.AppendUint32(wire, uint32(b[2]%16))
		wire = append(wire, b[4:4+n]...)
		b = b[4+n:]
	}
	return wire
}

// Whatever a client sends, nothing panics, the proxy goes on reading, and it is through with all of
// them in the end: Close waits for that.
func FuzzHTTP2Frames(f *testing.F) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}, {"content-length", "3"}} {
		require.NoError(f, enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	part := func(t http2.FrameType, flags http2.Flags, stream byte, payload string) string {
		return string([]byte{byte(t), byte(flags), stream, byte(len(payload))}) + payload
	}
	post := part(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, block.String())
	for _, seed := range []string{
		post + part(http2.FrameData, http2.FlagDataEndStream, 1, "abc"),
		post + part(http2.FrameData, 0, 1, "ab") + part(http2.FrameRSTStream, 0, 1, "\x00\x00\x00\x08"),
		post + part(http2.FrameData, http2.FlagDataPadded, 1, "\x02a\x00\x00") + part(http2.FrameHeaders, 5, 1, "\x00\x01x\x01y"),
		part(http2.FrameSettings, 0, 0, "\x00\x04\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00") + post,
		part(http2.FrameHeaders, 0, 1, block.String()[:5]) + part(http2.FrameContinuation, 4, 1, block.String()[5:]),
		part(http2.FramePing, 0, 0, "12345678") + part(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"),
		part(http2.FrameWindowUpdate, 0, 1, "\x7f\xff\xff\xff") + part(http2.FramePriority, 0, 3, "\x00\x00\x00\x03\x01"),
	} {
		f.Add([]byte(seed))
	}

	// No port is used up: the clients are pipes, and nobody listens where the requests go.
	var log bytes.Buffer
	p, err := New(testConfig(map[string]string{"/": "127.0.0.1:1"}), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(f, err)
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	go p.Serve(l)
	f.Cleanup(func() {
		require.NoError(f, p.Close())
		require.NotContains(f, log.String(), "panic")
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, far := net.Pipe()
		l.conns <- far
		c.SetDeadline(time.Now().Add(patience))
		var first bytes.Buffer
		first.WriteString(http2.ClientPreface)
		_ = http2.NewFramer(&first, nil).WriteSettings()
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, c)
			ended <- err
		}()
		_, err := c.Write(append(first.Bytes(), framesOf(b)...))
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the proxy does not read")
		c.Close()
		<-ended
	})
}

// pipeListener hands out connections that a test puts in.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
