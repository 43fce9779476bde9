package redteam

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// echoMoods are two places of the same kind, so that a reload can lead from one to the other.
var echoMoods = []mood{{name: "echo", play: playEcho}, {name: "echo-b", play: playEcho}}

// pattern is a body of n bytes that tells whose it is.
func pattern(nonce string, n int) string {
	return strings.Repeat(nonce+"|", n/(len(nonce)+1)+1)[:n]
}

// matcher holds a body, piece by piece, against the pattern of a nonce.
type matcher struct {
	nonce string
	n     int
	wrong bool
}

func (m *matcher) take(b []byte) {
	for _, c := range b {
		want := byte('|')
		if at := m.n % (len(m.nonce) + 1); at < len(m.nonce) {
			want = m.nonce[at]
		}
		m.wrong = m.wrong || c != want
		m.n++
	}
}

// Write implements io.Writer.
func (m *matcher) Write(b []byte) (int, error) {
	m.take(b)
	return len(b), nil
}

// playEcho holds a request against its nonce, and answers with as many bytes of that nonce as it asks for. Now and then
// it does what upstreams do to proxies.
func playEcho(c *uconn, q *question) bool {
	if !strings.HasSuffix(q.target, "/"+q.nonce) || q.nonce == "" {
		c.at.u.faults.add("the upstream gets %s with nonce %q", q.target, q.nonce)
		return false
	}
	mood := rand.IntN(100)
	switch {
	case mood < 2: // dies before it answers
		_ = c.SetLinger(0)
		return false
	case mood < 6: // answers before it has the body
		return c.echo(401, q) == nil && c.takeEcho(q)
	}
	if !c.takeEcho(q) {
		return false
	}
	switch {
	case mood < 8: // dies within its head
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Non")
		return false
	case mood < 11: // or within its body
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Nonce: %s\r\nContent-Length: %d\r\n\r\n%s", q.nonce, q.want+10, pattern(q.nonce, q.want/2))
		return false
	case mood < 14 && q.want < 4000: // sends more than its answer, in one segment: what would be the next one's
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Nonce: %s\r\nContent-Length: %d\r\n\r\n%s"+
			"HTTP/1.1 200 OK\r\nX-Nonce: poison\r\nContent-Length: 6\r\n\r\npoison", q.nonce, q.want, pattern(q.nonce, q.want))
		_, _ = c.in.Peek(1)
		return false
	case mood < 22: // takes its time
		pause(c.at.u.life, time.Duration(rand.IntN(20))*time.Millisecond)
	}
	return c.echo(200, q) == nil
}

// takeEcho reads the body, which must be its nonce's.
func (c *uconn) takeEcho(q *question) bool {
	m := &matcher{nonce: q.nonce}
	err := c.readBody(q, m.take)
	if m.wrong {
		c.at.u.faults.add("the upstream gets another body with nonce %s", q.nonce)
	}
	return err == nil && !m.wrong
}

// echo answers, in one of two framings.
func (c *uconn) echo(status int, q *question) error {
	body := pattern(q.nonce, q.want)
	framing := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	if rand.IntN(2) == 0 {
		half := len(body) / 2
		framing = "Transfer-Encoding: chunked\r\n\r\n"
		for _, piece := range []string{body[:half], body[half:]} {
			if piece != "" {
				framing += fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
			}
		}
		framing += "0\r\n\r\n"
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d X\r\nX-Nonce: %s\r\n%s", status, q.nonce, framing)
	return err
}
