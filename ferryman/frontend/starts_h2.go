package frontend

const (
	// maxStarting is for how many bytes of heads a connection has streams started at a time, so that other
	// connections are served meanwhile: a head may be many times as large as what has come of it.
	maxStarting = 64 << 10
	leastHead   = 2 << 10 // what a head counts at least
)

// startsH2 are the streams of a connection that are to be served. They wait until the reader has taken what
// has come, for that may take some back. The connection's lock guards it.
type startsH2 struct {
	fresh     []*streamH2
	starting  int    // what the heads count that are being read
	scheduled bool   // startMore will run
	startMore func() // resumeStarting, made once
}

// startSome starts as many streams as may start now, and drops those that nobody waits for. It needs the lock.
func (c *connH2) startSome() {
	waiting := c.fresh[:0]
	for _, s := range c.fresh {
		switch {
		case s.lost || c.raw.Gone():
			c.forget(s)
			s.release()
		case c.to != nil, c.running >= maxStreams, c.starting >= maxStarting:
			waiting = append(waiting, s)
		default:
			s.starting = max(s.fields.Size, leastHead)
			c.starting += s.starting
			c.running++
			c.ex.Go(s.coroutine)
		}
	}
	clear(c.fresh[len(waiting):])
	c.fresh = waiting
}

// dropFresh ends the streams that nothing was done for. It needs the lock.
func (c *connH2) dropFresh() {
	for _, s := range c.fresh {
		c.forget(s)
		s.release()
	}
	c.fresh = nil
}

// resumeStarting is startSome for a later turn.
func (c *connH2) resumeStarting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scheduled = false
	c.startSome()
}

// started tells that the work on the stream's head is done, which lets others start in the next iteration.
func (s *streamH2) started() {
	if s.starting == 0 {
		return
	}
	c := s.c
	c.mu.Lock()
	c.starting -= s.starting
	s.starting = 0
	more := len(c.fresh) > 0 && !c.scheduled
	c.scheduled = c.scheduled || more
	ex := c.ex
	c.mu.Unlock()
	if more {
		ex.Defer(c.startMore)
	}
}
