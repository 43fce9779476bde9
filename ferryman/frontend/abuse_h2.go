package frontend

import (
	"time"

	"golang.org/x/net/http2"
)

const (
	maxWaste    = 1000 // how many frames for nothing a client may send at once, before it is asked to go
	forgiveness = 100  // and for each second that passes

	costOfSettings   = 10 // each may concern all streams
	answersPerData   = 4  // frames that a client may answer a DATA frame with: windows, a PING
	answersPerStream = 4  // and what it may say of a stream beside its head: priority, windows
	ordinaryUpdate   = 1000
	updatesPerWaste  = 8 // updates of a window of at least that many bytes: some clients send one for each read

	// hasty is how young a stream is that was reset for nothing: a person who leaves a page takes longer.
	hasty = 50 * time.Millisecond
)

// abuseH2 counts frames that are cheap to send and that nothing comes of: the bait of CVE-2019-9512 and its
// kind, streams that are opened only to be reset (CVE-2023-44487), malformed heads. The connection's lock
// guards it.
type abuseH2 struct {
	wasted   int
	forgiven time.Time // up to when
	updates  int       // of windows
}

// waste counts n such frames.
func (c *connH2) waste(n int) {
	now := c.ex.Now()
	if d := now.Sub(c.forgiven); d >= time.Second {
		c.forgiven = now
		c.worked(int(min(d/time.Second, maxWaste)) * forgiveness)
	}
	c.wasted += n
}

// worked makes up for frames that belong to what a connection is for.
func (c *connH2) worked(n int) { c.wasted = max(0, c.wasted-n) }

// checkAbuse asks a client to leave that wastes too much, so that what it has opened is still served. If it
// goes on, its connection ends.
func (c *connH2) checkAbuse() error {
	switch {
	case c.wasted > 2*maxWaste:
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	case c.wasted > maxWaste:
		c.drain()
	}
	return nil
}
