package conformance

import (
	"fmt"
	"time"
)

// The moods of an upstream that flaps. It is in each for a moment, then in the next.
const (
	moodWell = iota
	moodUnavailable
	moodSlow
	moodClose
	moodPoison
	moodCut
	moodReset
	moodEarly
	moodGarbage
	moods
)

// temper is the mood of the moment. It lasts for some requests, lest a slow machine miss it.
func (u *soakUpstream) temper() int {
	if u != u.s.flappy {
		return moodWell
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.served++
	if d := time.Since(u.since); u.served > 8 && d > 80*time.Millisecond || d > 500*time.Millisecond {
		u.mood, u.since, u.served = (u.mood+1)%(2*moods), time.Now(), 0
	}
	if u.mood%2 == 1 {
		return moodWell // between two bad ones
	}
	return u.mood / 2
}

func soakMoody(c *soakConn, q *message) bool {
	mood := c.u.temper()
	if mood == moodEarly && q.framing != "none" {
		return c.early(q, wanted(q))
	}
	if mood == moodReset {
		return c.reset()
	}
	if !c.body(q) {
		return false
	}
	head, b := q.method == "HEAD", wanted(q)
	switch {
	case mood == moodUnavailable && !head:
		return c.send(soakHead(503, q, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b)))
	case mood == moodClose:
		return false
	case mood == moodGarbage:
		c.send(soakHead(200, q, "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"))
		return false
	case mood == moodPoison && !head && len(b) < 4<<10: // in one segment
		c.send(soakHead(200, q, fmt.Sprintf("Content-Length: %d\r\n\r\n%s%s", len(b), b, poison)))
		_, _ = c.w.br.Peek(1)
		return false
	case mood == moodCut && !head && b != "":
		return c.cut(q, b)
	case mood == moodSlow && !head:
		return c.slow(q, b)
	}
	return c.well(q)
}

// early answers before it has read the request's body, and reads on or closes.
func (c *soakConn) early(q *message, b string) bool {
	if len(b)%2 == 0 || len(b) > 4<<10 {
		return c.send(soakHead(401, q, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b))) && c.body(q)
	}
	// With the body unread this is a reset, which takes along what the kernel still has to send.
	c.send(soakHead(401, q, fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(b), b)))
	return false
}

// cut ends an answer before its end, in one way or another.
func (c *soakConn) cut(q *message, b string) bool {
	part := b[:len(b)/2]
	if len(b)%2 == 0 {
		c.send(soakHead(200, q, "X-Cut: 1\r\nTransfer-Encoding: chunked\r\n\r\n") + inChunks(part))
	} else {
		c.send(soakHead(200, q, fmt.Sprintf("X-Cut: 1\r\nContent-Length: %d\r\n\r\n%s", len(b), part)))
	}
	if len(b)%3 == 0 {
		return c.reset()
	}
	return false
}

// slow sends an answer in pieces.
func (c *soakConn) slow(q *message, b string) bool {
	s := soakHead(200, q, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b))
	for len(s) > 0 {
		n := min(len(s), max(30, len(b)/4))
		if !c.send(s[:n]) {
			return false
		}
		s = s[n:]
		pause(3 * time.Millisecond)
	}
	return true
}
