package redteam

import (
	"fmt"
	"io"
	"strings"
)

// mood is a way to treat a request. play returns whether the connection takes another one. The mood's name
// is the first segment of its route.
type mood struct {
	name  string
	small bool // what the kernel takes says nothing of ferryman
	play  func(c *uconn, q *question) (goOn bool)
}

// bystanderMood is that of the bystander's upstream.
var bystanderMood = mood{name: "bystander", play: playOK}

// moods are those of the attackers' upstream. A connection of one that waits ends with its place.
var moods = []mood{
	{name: "ok", play: playOK},
	{name: "hang", play: playHang},
	{name: "stall", small: true, play: playStall},
	{name: "refuse", play: playRefuse},
	{name: "die", play: playHang}, // until an attack has it die
	{name: "big", play: playBig},
	{name: "trailers", play: playTrailers},
}

// playOK takes the whole request and answers with its nonce.
func playOK(c *uconn, q *question) bool {
	return c.readBody(q, nil) == nil && c.answer(200, q.nonce, "ok\n") == nil
}

// playHang takes all that comes and never answers.
func playHang(c *uconn, _ *question) bool {
	for {
		b, err := c.in.Peek(1)
		if err != nil {
			c.at.aborts.Add(1)
			return false
		}
		_, _ = c.in.Discard(max(len(b), c.in.Buffered()))
	}
}

// playStall takes nothing but the head. A connection that nobody reads does not tell that it has ended.
func playStall(c *uconn, _ *question) bool {
	<-c.at.u.life.Done()
	return false
}

// playRefuse answers at once, and takes what still comes.
func playRefuse(c *uconn, q *question) bool {
	if c.answer(413, q.nonce, "too large\n") != nil {
		return false
	}
	return playHang(c, q)
}

const bigAnswer = 8 << 20

var bigPiece = strings.Repeat("big answers, small readers. ", 2340) // 64 KiB

// playBig answers with 8 MiB.
func playBig(c *uconn, _ *question) bool {
	_ = c.SetWriteBuffer(64 << 10)
	if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", bigAnswer); err != nil {
		return false
	}
	for n := bigAnswer; n > 0; n -= len(bigPiece) {
		if _, err := io.WriteString(c, bigPiece[:min(n, len(bigPiece))]); err != nil {
			return false
		}
	}
	return true
}

// hugeTrailer is a trailer section of 60 KB in 120 lines.
var hugeTrailer = func() string {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "X-Trailer-%d: %s\r\n", i, strings.Repeat("t", 480))
	}
	return b.String()
}()

func playTrailers(c *uconn, q *question) bool {
	if c.readBody(q, nil) != nil {
		return false
	}
	_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n"+hugeTrailer+"\r\n")
	return err == nil
}
