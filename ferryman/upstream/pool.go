package upstream

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// maxIdle bounds the idle connections of one upstream on one executor. It is what a burst may
// leave behind; the next prunes take it down.
const maxIdle = 512

// pool is the stack of idle connections of one executor. Its lock is uncontended: only the
// executor itself, and the scrape through size, come here.
type pool struct {
	size atomic.Int64 // len(idle), for readers without the lock

	maxDials int

	mu      sync.Mutex // guards what follows
	idle    []*Conn
	ex      netloop.Executor // the executor whose connections these are; nil until somebody waits for the first
	waiting queue            // while somebody does, nothing is pooled but what only others could use
	dials   int              // under way
}

func (p *pool) executor() netloop.Executor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ex
}

func (p *pool) pop() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	p.size.Store(int64(n - 1))
	return c
}

// push gives c to whoever waits, or takes it in. It returns the oldest connection for the caller to close where the
// pool is full.
func (p *pool) push(c *Conn) (taken bool, surplus *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := p.waiting.first; w != nil; w = w.next {
		if !w.fresh {
			c.reused = true
			p.wake(w, c, nil)
			return true, nil
		}
	}
	if len(p.idle) >= maxIdle {
		surplus = p.idle[0]
		copy(p.idle, p.idle[1:])
		p.idle[len(p.idle)-1] = c
		return false, surplus
	}
	p.idle = append(p.idle, c)
	p.size.Store(int64(len(p.idle)))
	return false, nil
}

// closeBelow closes every connection, or those put back before a moment and those that are no
// longer fit for use. It runs on the pool's executor.
func (p *pool) closeBelow(before time.Time, every bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.idle[:0]
	for _, c := range p.idle {
		if !every && !c.since.Before(before) && c.fit(p.ex.Now(), false) {
			kept = append(kept, c)
			continue
		}
		c.Conn.Close()
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	p.size.Store(int64(len(kept)))
}
