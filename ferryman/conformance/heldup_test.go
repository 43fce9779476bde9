package conformance

import (
	"testing"
	"time"
)

// unlessHeldUp runs a step that must not meet a limit, and returns what came of it. Where the answer to what send has
// sent took as long as the limit, a machine that is too busy has held somebody up: the limit strikes rightly then, and
// the step is run again.
func (r *rig) unlessHeldUp(t *testing.T, limit time.Duration, method string, send func(c *client)) *message {
	t.Helper()
	for {
		c := r.dial(t)
		send(c)
		sent := time.Now()
		m := c.must(t, method)
		c.close()
		if m.status != 504 || time.Since(sent) < limit*9/10 {
			return m
		}
		t.Logf("held up: %v from the last byte to the 504", time.Since(sent))
	}
}
