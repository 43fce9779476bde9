package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCase058_DisguisedFramingFields generates framing fields with a byte before, inside or after name
// and value, folded, doubled and quoted. Each is refused, or forwarded in one canonical framing.
func TestCase058_DisguisedFramingFields(t *testing.T) {
	var lines []string
	for b := range 256 {
		if scale <= 1 && b%7 != 0 && strings.IndexByte("\x00\t\n\v\f\r -_.,:;\"'\x7f\x85\xa0\xad\xc2\xff", byte(b)) < 0 {
			continue // the rest of the family only at a larger scale
		}
		x := string([]byte{byte(b)})
		lines = append(lines,
			x+"Transfer-Encoding: chunked", "Transfer-Encoding"+x+": chunked", "Transfer"+x+"Encoding: chunked",
			"Transfer-Encoding:"+x+"chunked", "Transfer-Encoding: chunked"+x, "Transfer-Encoding: chun"+x+"ked", "Transfer-Enco"+x+"ding: chunked",
			x+"Content-Length: 5", "Content-Length"+x+": 5", "Content"+x+"Length: 5", "Content-Length:"+x+"5", "Content-Length: 5"+x)
	}
	for _, v := range []string{"chunked", "identity", "gzip, chunked"} {
		lines = append(lines, "X: 1\r\n Transfer-Encoding: "+v, "Transfer-Encoding:\r\n "+v, "Transfer-Encoding: \""+v+"\"",
			"X: 1\rTransfer-Encoding: "+v, "X: 1\nTransfer-Encoding: "+v, "X: 1\x00Transfer-Encoding: "+v,
			"Transfer-Encoding: "+v+"\r\nTransfer-Encoding: "+v, "Transfer Encoding: "+v, "Transfer-Encodin: "+v, "\"Transfer-Encoding\": "+v)
	}
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for i, line := range lines {
			if m.tls && i%8 != 0 && scale <= 1 {
				continue
			}
			r.refusedOrCanonical(t, line)
		}
		r.get(t, "/")
	})
}

func (r *rig) refusedOrCanonical(t *testing.T, line string) {
	t.Helper()
	heads := len(r.U[1].started())
	c := r.dial(t)
	defer c.close()
	n := nonce()
	c.send("POST /p HTTP/1.1\r\nHost: a\r\nX-Nonce: " + n + "\r\nContent-Length: 40\r\n" + line + "\r\n\r\n0\r\n\r\n" + smuggled)
	m, err := c.response("POST")
	require.NoError(t, err, "%q", line)
	if m.status == 200 {
		require.Equal(t, n, m.get("X-Nonce"))
		q := r.U[1].last(t)
		require.Equal(t, int64(40), q.bodyLen, "%q", line)
		require.Equal(t, "length", q.framing, "%q", line)
		require.Len(t, r.U[1].started(), heads+1)
		c.still0(t, line)
		return
	}
	require.Equal(t, 400, m.status, "%q", line)
	require.Equal(t, "close", m.get("Connection"))
	c.closedByPeer(t)
	require.Len(t, r.U[1].started(), heads, "%q", line)
}

// still0 asserts that nothing is buffered behind a response.
func (c *client) still0(t *testing.T, line string) {
	t.Helper()
	require.Zero(t, c.w.br.Buffered(), "%q: bytes behind the response", line)
}
