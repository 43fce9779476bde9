package conformance

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refusesPlaintext reads the answer to plain HTTP on the TLS port, and its end.
func refusesPlaintext(t testing.TB, nc net.Conn, method, body string) {
	t.Helper()
	_ = nc.SetDeadline(time.Now().Add(patience))
	w := newWireReader(nc)
	m, err := w.response(method)
	require.NoError(t, err)
	own(t, m, 400, body)
	require.Equal(t, []string{"close"}, m.values("Connection"))
	rest, err := io.ReadAll(w.br)
	require.NoError(t, err, "the connection must end with FIN")
	require.Empty(t, rest)
}

const speaksTLS = "this port speaks TLS: use https://"

// Cases 273 and 309.
func TestCase273And309_PlainHTTPOnTheTLSPortIsToldSo(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		loud := func() int { return r.log.count("level=") - r.log.count("level=DEBUG") }
		before, answered := loud(), r.answered(400)
		for _, raw := range []string{request{}.String() + smuggled, "GET http://a/ HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n", "PUT /x", "DELET", "PATCH / HTTP/1.1",
			"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "TRACE /", "CONNECT a:443 HTTP/1.1\r\n\r\n", h2Preface + h2Settings} {
			nc := r.raw(t)
			_, err := io.WriteString(nc, raw)
			require.NoError(t, err)
			refusesPlaintext(t, nc, "GET", speaksTLS)
			nc.Close()
			answered++
		}
		nc := r.raw(t)
		_, err := io.WriteString(nc, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		refusesPlaintext(t, nc, "HEAD", "")
		nc.Close()
		require.Equal(t, answered+1, r.answered(400), "answers are counted")
		require.Equal(t, before, loud(), "it is told at debug only")
		require.Zero(t, r.heads())
		require.Equal(t, 200, r.get(t, "/").status)
	})
}

func TestCase309_TheAnswerReachesAPlaintextUpload(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		nc := r.raw(t)
		defer nc.Close()
		_ = nc.SetDeadline(time.Now().Add(2 * patience))
		_, err := io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10485760\r\n\r\n")
		require.NoError(t, err)
		for _, block := range blocks(strings.Repeat("b", 64<<10), 160) { // the answer is read only after everything was written
			_, err := io.WriteString(nc, block)
			require.NoError(t, err, "reset while the body was being sent")
		}
		refusesPlaintext(t, nc, "POST", speaksTLS)
	})
}

func TestCase309_GarbageOnTheTLSPortGetsNoAnswerInPlaintext(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		answered := r.answered(400)
		for _, raw := range []string{"garbage that is no record\r\n\r\n", "get / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "GETS / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x00\x00\x00",
			" GET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "EHLO a\r\n", "PUTTY / HTTP/1.1\r\n\r\n", "HEADS / HTTP/1.1\r\n", "DELE 1\r\n"} {
			nc := r.raw(t)
			_, err := io.WriteString(nc, raw)
			require.NoError(t, err)
			b, _ := io.ReadAll(nc)
			require.NotContains(t, string(b), "HTTP", "%q", raw)
			nc.Close()
		}
		require.Equal(t, answered, r.answered(400))
	})
}

func TestCase309_SlowPlaintextEndsWithTheHandshakesLimit(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortLimits)
		start := time.Now()
		nc := r.raw(t)
		defer nc.Close()
		_, err := io.WriteString(nc, "GET ")
		require.NoError(t, err)
		b, _ := io.ReadAll(nc)
		require.Empty(t, b, "four bytes are not enough to tell")
		require.GreaterOrEqual(t, time.Since(start), shortHead*8/10)

		r = newRig(t, m)
		slow := r.raw(t)
		defer slow.Close()
		for _, part := range []string{"G", "E", "T", " ", "/"} {
			_, err := io.WriteString(slow, part)
			require.NoError(t, err)
			pause(quiet)
		}
		refusesPlaintext(t, slow, "GET", speaksTLS)
	})
}
