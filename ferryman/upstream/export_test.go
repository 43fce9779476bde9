package upstream

import (
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/pool"
)

// MaxIdle and MaxDials are the bounds of one executor, the latter where there is no other.
const MaxIdle, MaxDials = pool.MaxIdle, pool.MaxDials

// Waiting is how many requests wait for a connection on an executor.
func (u *Upstream) Waiting(ex netloop.Executor) int { return u.pool.Waiting(ex) }
