package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refusesFields refuses a family of field lines (joined by the caller) beside a good Host.
func refusesFields(t *testing.T, lines []string, statuses ...int) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, line := range lines {
			t.Run(label(line), func(t *testing.T) {
				r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\n"+line+"\r\n\r\n", statuses...)
			})
		}
	})
}

func TestCase018_BlankBeforeTheColonIsRefused(t *testing.T) {
	refusesFields(t, []string{"X : 1", "X\t: 1", "Host : a", "Content-Length : 0", "Transfer-Encoding : chunked",
		"X  : 1", "X \t: 1", "Connection : close"})
}

func TestCase018_BlankBeforeTheColonOfTheOnlyHost(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		newRig(t, m).refuses(t, "GET / HTTP/1.1\r\nHost : a\r\n\r\n")
	})
}

func TestCase019_IndentedFirstFieldIsRefused(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, line := range []string{" X: 1", "\tX: 1", " Host: b", " \r\nX: 1", " "} {
			t.Run(label(line), func(t *testing.T) {
				r.refuses(t, "GET / HTTP/1.1\r\n"+line+"\r\nHost: a\r\n\r\n")
			})
		}
	})
}

func TestCase020_FoldingIsRefused(t *testing.T) {
	refusesFields(t, []string{"X: a\r\n b", "X: a\r\n\tb", "X:\r\n b", "Transfer-Encoding:\r\n chunked",
		"Transfer-Encoding: chunked\r\n ", "Content-Length: 1\r\n 0", "X: a\r\n ", "X: a\r\n Y: b"})
	t.Run("of the only host", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			newRig(t, m).refuses(t, "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n")
		})
	})
}

func TestCase021_LineWithoutColonIsRefused(t *testing.T) {
	refusesFields(t, []string{"Foo", "Content-Length 10", "Na\nme: x", "Transfer-Encoding", "chunked", "GET / HTTP/1.1"})
}

func TestCase022_EmptyNameIsRefused(t *testing.T) {
	refusesFields(t, []string{": x", ":", ":x", ":: x"})
}

func TestCase023_NamesAreTokens(t *testing.T) {
	var lines []string
	bad := "()<>@,;\\\"/[]?={} \t\x7f"
	for b := range 0x20 {
		bad += string([]byte{byte(b)})
	}
	for b := 0x80; b <= 0xff; b++ {
		bad += string([]byte{byte(b)})
	}
	for i := range len(bad) {
		b := bad[i : i+1]
		lines = append(lines, "Na"+b+"me: 5")
		if i%5 == 0 || scale > 1 {
			lines = append(lines, b+"Name: 5", "Content-Length"+b+": 5", "Transfer-Encoding"+b+": chunked")
		}
	}
	refusesFields(t, lines)
}

func TestCase024_NulInAValueIsRefused(t *testing.T) {
	refusesFields(t, []string{"X: a\x00b", "X: \x00", "X:\x00", "X: a\x00"})
	t.Run("of the only host", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			newRig(t, m).refuses(t, "GET / HTTP/1.1\r\nHost: a\x00b\r\n\r\n")
		})
	})
}

func TestCase025_BareCarriageReturnIsRefused(t *testing.T) {
	refusesFields(t, []string{"X: a\rb", "X: a\r\rb", "Foo: bar\rTransfer-Encoding: chunked", "X: a\r", "X: \r",
		"X:\r", "\rX: a", "X: a\r\r\n", "X\r: a"})
}

func TestCase026_BareLineFeedIsRefused(t *testing.T) {
	refusesFields(t, []string{"X: a\nY: b", "Foo: b\n\nTransfer-Encoding: chunked", "X:\n\n" + smuggled, "X: a\n",
		"\n", "\nX: a", "X: a\n Y: b"})
	t.Run("everywhere", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			r := newRig(t, m)
			r.refuses(t, "GET / HTTP/1.1\nHost: a\n\n")
			r.refuses(t, "GET / HTTP/1.1\nHost: a\r\n\r\n")
			r.refuses(t, "GET / HTTP/1.1\r\nHost: a\n\r\n")
			r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\n\n")
			r.refuses(t, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
		})
	})
}

func TestCase027_ControlCharactersInValues(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		var lines []string
		for b := 1; b < 0x20; b++ {
			if b != '\t' && b != '\n' && b != '\r' {
				lines = append(lines, fmt.Sprintf("X: a%cb", b), fmt.Sprintf("X: %c", b))
			}
		}
		refusesFields(t, append(lines, "X: a\x7fb", "X: \x7f"))
	})
	t.Run("forwarded", func(t *testing.T) {
		forEachMode(t, func(t *testing.T, m mode) {
			c := newRig(t, m).dial(t)
			values := []string{"a\tb", "a \t b", "a  b"}
			for b := 0x80; b <= 0xff; b++ {
				values = append(values, "a"+string([]byte{byte(b)})+"b", string([]byte{byte(b)}))
			}
			for _, v := range values {
				_, q := c.serves(t, "GET / HTTP/1.1\r\nHost: a\r\nX: "+v+"\r\n\r\n")
				require.Equal(t, []string{v}, q.values("X"))
			}
		})
	})
}

func TestCase028_NamesHaveNoCase(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		c := newRig(t, m).dial(t)
		_, q := c.serves(t, "POST / HTTP/1.1\r\nhOST: a\r\ncOnTeNt-LeNgTh: 5\r\n\r\nhello")
		require.Equal(t, "hello", string(q.body))
		_, q = c.serves(t, "POST / HTTP/1.1\r\nHOST: a\r\nTRANSFER-ENCODING: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
		require.Equal(t, "hello", string(q.body))
		_, q = c.serves(t, "GET / HTTP/1.1\r\nHOST: a\r\ncOnNeCtIoN: X-dRoP\r\nx-DrOp: 1\r\nkEEP-aLIVE: 1\r\n\r\n")
		require.False(t, q.has("X-Drop"))
		require.False(t, q.has("Keep-Alive"))
	})
}

func TestCase029_LinesKeepTheirOrder(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		_, q := newRig(t, m).serves(t, "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n")
		require.Equal(t, []string{"1", "3"}, q.values("A"))
		require.Contains(t, strings.Join(q.lines(), "|"), "A: 1|B: 2|A: 3")
	})
}

func TestCase030_FieldLimits(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		lines := func(n int) string {
			return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("F: 1\r\n", n-1) + "\r\n"
		}
		_, q := r.serves(t, lines(256))
		require.Len(t, q.values("F"), 255)
		r.refuses(t, lines(257), 431)
		r.refuses(t, lines(10_000), 431)
		r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n", 431)
		r.refuses(t, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("x", 1<<20)+": 1\r\n\r\n", 400, 431)
		r.refusesExactly(t, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 70<<10), 431)
	})
}

func TestCase031_HeadLimitIs64KiB(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		head := func(n int) string {
			s := "GET / HTTP/1.1\r\nHost: a\r\n"
			for n-len(s) > 2000 {
				s += "X: " + strings.Repeat("x", 995) + "\r\n"
			}
			return s + "X: " + strings.Repeat("x", n-len(s)-7) + "\r\n\r\n"
		}
		require.Len(t, head(64<<10), 64<<10)
		_, q := r.serves(t, head(64<<10))
		require.Len(t, q.values("X"), strings.Count(head(64<<10), "X: "))
		r.refuses(t, head(64<<10+1), 431)
		for _, n := range []int{64 << 10, 64<<10 + 1} {
			c := r.dial(t)
			s := head(n)
			for ; len(s) > 1000; s = s[1000:] {
				c.send(s[:1000])
			}
			c.send(s)
			if n == 64<<10 {
				c.want(t, "GET", 200)
			} else {
				c.refused(t, 431)
			}
			c.close()
		}
	})
}

func TestCase032_CutHeadIsNoRequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, raw := range []string{"GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HT", "GET / HTTP/1.1\r\nHos",
			"GET / HTTP/1.1\r\nHost: a\r\n\r", "GET / HTTP/1.1\r\nHost: a\r", "G"} {
			t.Run(label(raw), func(t *testing.T) {
				c := r.dial(t)
				defer c.close()
				c.send(raw)
				pause(5 * time.Millisecond)
				c.fin()
				b, err := c.end()
				require.NoError(t, err)
				require.True(t, len(b) == 0 || strings.HasPrefix(string(b), "HTTP/1.1 400 "), "%q", b)
			})
		}
		require.Empty(t, r.allHeads())
		for _, u := range r.U[1:] {
			require.Empty(t, u.connections(), "%s was contacted", u.name)
		}
	})
}

func TestCase033_LineEndInsideAName(t *testing.T) {
	refusesFields(t, []string{"Content-Length\r\n: 5", "Transfer-\r\nEncoding: chunked", "Transfer-Encoding\r\n: chunked"})
}

func TestCase034_GarbageBeforeAndAfterARequest(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.refuses(t, "BAD\r\n\r\n"+request{}.String())
		c := r.dial(t)
		c.send(request{}.String() + "BAD\r\n\r\n" + smuggled)
		c.want(t, "GET", 200)
		c.refused(t, 400)
		require.Equal(t, 1, r.whole())
	})
}
