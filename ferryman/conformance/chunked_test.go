package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func chunked(body string) string {
	return "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body
}

func TestCase041_ChunkedArrivesInOneFraming(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		_, q := newRig(t, m).serves(t, chunked("5\r\nhello\r\n0\r\n\r\n"))
		require.Equal(t, "hello", string(q.body))
		require.Equal(t, 1, len(q.values("Transfer-Encoding"))+len(q.values("Content-Length")))
	})
}

func TestCase042_ChunkSizesInHex(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, size := range []string{"A", "a", "0A", "000000000000000A", "0a"} {
			_, q := r.serves(t, chunked(size+"\r\n0123456789\r\n0\r\n\r\n"))
			require.Equal(t, "0123456789", string(q.body))
		}
		_, q := r.serves(t, chunked("1\r\nx\r\n0000000000000000\r\n\r\n"))
		require.Equal(t, "x", string(q.body))
		for _, zeros := range []int{16, 10_000} {
			t.Run(fmt.Sprint(zeros), func(t *testing.T) {
				r.refusesBody(t, chunked(strings.Repeat("0", zeros)+"A\r\n0123456789\r\n0\r\n\r\n"))
				r.refusesBody(t, chunked("1\r\nx\r\n"+strings.Repeat("0", zeros+1)+"\r\n\r\n"))
			})
		}
	})
}

// badSizes are the chunk-size lines of cases 43 and 44, with what follows up to the data.
var badSizes = []string{"\r\n", "Z\r\n", "-1\r\n", "+5\r\n", "0x5\r\n", "5 5\r\n", "5_\r\n", "0_2e\r\n", " 5\r\n",
	"\t5\r\n", "\n5\r\n", "5\x00\r\n", "1nonhex-tail\r\n", "8000000000000000\r\n", "FFFFFFFFFFFFFFED\r\n",
	"FFFFFFFFFFFFFFFF\r\n", "10000000000000000\r\n", "5\n", "5\rX", "5\r\r;A\r\n", "2\r\r;a\r\n", "5\r\r\n", "\r5\r\n",
	"5\xa0\r\n", "5\x0b\r\n", "5\t5\r\n", "5,5\r\n", "g\r\n"}

// refusesChunks refuses chunked bodies, at once and behind a good chunk that was relayed already.
func refusesChunks(t *testing.T, bodies []string) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, b := range bodies {
			t.Run(label(b), func(t *testing.T) {
				r.refusesBody(t, chunked(b))
				heads, whole := r.heads(), r.whole()
				c := r.dial(t)
				defer c.close()
				c.send(chunked("3\r\nabc\r\n"))
				q := r.U[1].awaitStarted(t, heads+1)
				c.send(b + smuggled)
				c.refused(t, 400)
				r.U[1].gone(t, q.conn)
				require.Equal(t, whole, r.whole())
			})
		}
	})
}

// Cases 43 and 44.
func TestCase043And044_BadChunkSizes(t *testing.T) {
	var bodies []string
	for _, s := range badSizes {
		bodies = append(bodies, s+"hello\r\n0\r\n\r\n")
	}
	refusesChunks(t, bodies)
}

func TestCase045_ChunkExtensions(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			for _, s := range []string{"5;a=b", "5;a", `5;a="q;\"x"`, "5 ;a", "5;", "5;a=b;c=d", "5\t;a", "5; a = b"} {
				t.Run(label(s), func(t *testing.T) {
					_, q := r.serves(t, chunked(s+"\r\nhello\r\n0;last\r\n\r\n"))
					require.Equal(t, "hello", string(q.body))
				})
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		refusesChunks(t, []string{"5;a\nb\r\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n", "5;a\x00b\r\nhello\r\n0\r\n\r\n",
			"5;a\n\r\nhello\r\n0\r\n\r\n", "5;a\r\r\nhello\r\n0\r\n\r\n", "5;\"a\nb\"\r\nhello\r\n0\r\n\r\n", "5;a\x01\r\nhello\r\n0\r\n\r\n",
			"5;" + strings.Repeat("a", 1<<20) + "\r\nhello\r\n0\r\n\r\n"})
	})
}

// Case 46, and the client's side of case 166.
func TestCase046And166_DataThatDoesNotMatchItsSize(t *testing.T) {
	refusesChunks(t, []string{"5\r\nhelloX\r\n", "5\r\nhell\r\n0\r\n\r\n", "a\r\n0123456789\n0\r\n\r\n",
		"1\r\nQ  2\r\nok\r\n0\r\n\r\n" + smuggled, "d\r\nabcdefghijklm\r\n\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n",
		"5\r\nhello\r0\r\n\r\n", "5\r\nhello\r\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello\r\n\r\n0\r\n\r\n"})
}

func TestCase047_Trailers(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			c := newRig(t, m).dial(t)
			for _, line := range []string{"X-T: 1", "Content-Length: 99", "Transfer-Encoding: x", "Host: evil", "Authorization: z",
				"X-T: 1\r\nX-T: 2", "X-Forwarded-For: 6.6.6.6"} {
				_, q := c.serves(t, chunked("5\r\nhello\r\n0\r\n"+line+"\r\n\r\n"))
				require.Equal(t, "hello", string(q.body))
				require.Empty(t, q.trailers)
				require.Equal(t, []string{"a"}, q.values("Host"))
				require.False(t, q.has("X-T"))
				require.False(t, q.has("Authorization"))
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		var bodies []string
		for _, line := range []string{" X: 1", "X : 1", "nocolon", "X: a\x00b", "X: a\nY: b", "X: a\r\n b", ": x", "X\xa0: 1", "X: a\rb",
			strings.Repeat("X: 1\r\n", 9_999) + "X: 1", "X: " + strings.Repeat("x", 1<<20)} {
			bodies = append(bodies, "5\r\nhello\r\n0\r\n"+line+"\r\n\r\n")
		}
		refusesChunks(t, bodies)
	})
}
