package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// endless answers with more than any kernel buffers.
func endless(c *uconn, q *message) bool {
	c.body(q)
	block := strings.Repeat("x", 64<<10)
	c.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nX-U: x\r\nContent-Length: %d\r\n\r\n", 1<<30))
	for c.send(block) {
	}
	return false
}

// A reader that was cut off must not go on holding what the kernel has buffered for it, which is
// megabytes: with an orderly close it could take a byte now and then for ever (found by slowhttptest).
func TestCase261_ReaderThatIsCutHoldsNothing(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.BodyIdleTimeout = bodyIdle })
		r.U[1].playAlways(endless)
		c := r.dialWith(t, clientTLS, 16<<10)
		c.send(request{}.String())
		r.U[1].awaitStarted(t, 1)
		r.U[1].gone(t, 0)
		r.awaitIdle(t)
		wasReset(t, c)
	})
}

func TestCase261_HTTP2ReaderThatIsCutHoldsNothing(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, func(s *setup) { s.cfg.BodyIdleTimeout = bodyIdle })
		r.U[1].playAlways(endless)
		h := r.dialRawH2(t, h2options{manual: true, rcvbuf: 16 << 10})
		h.send(http2.ClientPreface)
		h.write(func() error {
			return h.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
		})
		h.grant(0, 1<<30)
		h.ask("GET", "/", true)
		r.U[1].awaitStarted(t, 1)
		r.U[1].gone(t, 0)
		r.awaitIdle(t)
		wasReset(t, h.client)
	})
}

// wasReset reads what the own kernel has, behind which must be a reset.
func wasReset(t *testing.T, c *client) {
	t.Helper()
	_ = c.tcp.SetReadDeadline(time.Now().Add(patience))
	n, err := io.Copy(io.Discard, c.tcp)
	require.True(t, isReset(err), "%d bytes, then %v", n, err)
}
