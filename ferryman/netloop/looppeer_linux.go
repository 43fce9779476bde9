package netloop

// What a loop knows of the peer of a connection, and what it does when that one goes away.

func (c *loopConn) Quiet() bool {
	if c.usable(0) != nil {
		return false
	}
	if !quiet(c.fd) {
		c.input = someInput
	} else {
		c.input = noInput
	}
	return c.input == noInput
}

func (c *loopConn) SeemsQuiet() bool {
	return c.input == noInput && c.usable(0) == nil || c.Quiet()
}

func (c *loopConn) Gone() bool { return c.gone }

func (c *loopConn) Guard(victim Aborter)      { c.guard(victim, &c.gone) }
func (c *loopConn) GuardReset(victim Aborter) { c.guard(victim, &c.broken) }

func (c *loopConn) guard(victim Aborter, abortOn *bool) {
	c.victim, c.abortOn = victim, abortOn
	if victim == nil || !*abortOn {
		return
	}
	c.victim = nil
	victim.Abort()
}
