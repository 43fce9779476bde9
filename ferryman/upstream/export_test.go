package upstream

import "github.com/Bunty9/ferryman/ferryman/netloop"

// MaxIdle and MaxDials are the bounds of one executor, the latter where there is no other.
const MaxIdle, MaxDials = maxIdle, maxDials

// Waiting is how many requests wait for a connection on an executor.
func (u *Upstream) Waiting(ex netloop.Executor) int {
	p := &u.pools[ex.Index()]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.n
}
