package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const chunkedHead = "HTTP/1.1 200 OK\r\nX-U: x\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestCase307_BlanksBehindAChunkSizeAreTakenInResponses(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		for _, body := range []string{"5  \r\nhello\r\n0\r\n\r\n", "5\t\r\nhello\r\n0  \r\n\r\n", "005      \r\nhello\r\n0 ;x\r\nX-T: 1\r\n\r\n"} {
			r.U[1].play(reply(chunkedHead + body))
			require.Equal(t, "hello", string(c.do(t, request{}).body), "%q", body)
		}
		require.Len(t, r.U[1].connections(), 1, "it was a sound answer: the connection is used again")
		for _, body := range []string{"5 x\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5 \nhello\r\n0\r\n\r\n", "5" + strings.Repeat(" ", 8<<10) + "\r\nhello\r\n0\r\n\r\n"} {
			r.U[1].play(replyThenHold(chunkedHead + body))
			c := r.dial(t)
			c.send(request{}.String())
			resp, err := c.response("GET")
			require.True(t, err != nil || resp.status == 502, "%q", body)
			c.close()
			r.U[1].gone(t, r.U[1].last(t).conn)
		}
	})
}

func TestCase307_BlanksBehindAChunkSizeOfARequestAreRefused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, body := range []string{"5  \r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0 \r\n\r\n"} {
			r.refusesBody(t, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		}
	})
}

func TestCase307_BlanksBehindAChunkSizeTowardsHTTP2(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		h := r.dialH2(t)
		r.U[1].play(reply(chunkedHead + "5  \r\nhello\r\n0\t\r\n\r\n"))
		require.Equal(t, "hello", string(h.want(t, h.ask("GET", "/", true), 200).data))
	})
}
