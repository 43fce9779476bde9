package upstream

import "time"

const (
	// strayWithin is how soon bytes on an idle connection belong to the last answer: what comes later may be
	// the word of an upstream that is about to close it.
	strayWithin = time.Second
	// distrust is how long no connection of an upstream that sends such bytes is used again in doubt.
	distrust = time.Hour
)

// Doubt says that the last answer had no body because of a rule (HEAD, 204, 304) and not of its length. An
// upstream that breaks the rule sends one all the same, and the next request on the connection would get it
// for its answer. Whoever takes the connection next has the kernel look; once an upstream was caught, its
// connections in doubt are closed.
func (c *Conn) Doubt() { c.doubtful = true }

// noteStray finds out whether a connection that is not quiet has stray bytes or has just ended.
func (c *Conn) noteStray(now time.Time) {
	if now.Sub(c.since) > strayWithin || c.In.Buffered() == 0 && c.Quiet() {
		return
	}
	n := c.In.Buffered()
	if n == 0 {
		c.SetReadDeadline(time.Time{})
		var b [1]byte
		n, _ = c.Read(b[:])
	}
	if n > 0 {
		c.up.stray.Store(now.UnixNano())
	}
}

// strays reports whether the upstream was caught lately.
func (u *Upstream) strays(now time.Time) bool {
	at := u.stray.Load()
	return at != 0 && now.UnixNano()-at < int64(distrust)
}
