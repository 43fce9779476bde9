package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCase166_BrokenUploadsAreNobodysFailure(t *testing.T) {
	const length = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for _, row := range []struct {
			name, raw, rest string // what follows once the upstream has the head; "" is FIN
		}{
			{"bad size", chunked("5\r\nhello\r\n"), "Z\r\n"},
			{"size and data differ", chunked("5\r\nhello\r\n"), "2\r\nokay\r\n"},
			{"bad trailer", chunked("5\r\nhello\r\n"), "0\r\nX : 1\r\n\r\n"},
			{"end inside a chunk", chunked("5\r\nhel"), ""},
			{"end between chunks", chunked("5\r\nhello\r\n"), ""},
			{"end short of the length", length, ""},
		} {
			t.Run(row.name, func(t *testing.T) {
				require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
					heads, whole := len(r.U[1].started()), r.whole()
					c := r.dial(t)
					defer c.close()
					c.send(row.raw)
					q := r.U[1].awaitStarted(t, heads+1)
					if row.rest == "" {
						c.fin()
					} else {
						c.send(row.rest)
					}
					c.refused(t, 400)
					r.U[1].gone(t, q.conn)
					require.Equal(t, whole, r.whole())
				}))
			})
		}
	})
}

func TestCase166_BrokenUploadsOnHTTP2AreNobodysFailure(t *testing.T) {
	forEachH2Mode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, threshold2)
		for name, rest := range map[string]string{"too short": "", "too long": "toomuch"} {
			t.Run(name, func(t *testing.T) {
				h := r.dialH2(t)
				require.Equal(t, neutral, r.verdictOf(t, "/", r.U[1], func() {
					heads, whole := len(r.U[1].started()), r.whole()
					id := h.ask("POST", "/", false, "content-length", "10")
					h.data(id, false, "hello")
					q := r.U[1].awaitStarted(t, heads+1)
					h.data(id, true, rest)
					s := h.answer(t, id)
					require.True(t, s.reset != nil || s.final().status == "400", "%s", h)
					r.U[1].gone(t, q.conn)
					require.Equal(t, whole, r.whole())
				}))
			})
		}
	})
}
