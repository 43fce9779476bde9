package ferryman

import (
	"context"
	"fmt"
	"time"
)

// Shutdown stops accepting, lets what is in flight end and closes what is idle: HTTP/1.1 clients
// are told "Connection: close", HTTP/2 ones a GOAWAY in two steps. When ctx ends first, the rest
// is cut, and the error says how many connections that were. Readiness ends at once, the metrics
// handler goes on. What was logged has reached the logger then, unless it takes more than a second.
func (p *Proxy) Shutdown(ctx context.Context) error {
	if !p.stopAccepting() {
		return nil
	}
	drained := p.frontend.Drain()
	for _, u := range p.snapshot.Load().upstreams {
		u.checker.Stop()
	}
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		if n := p.frontend.Abort(); n > 0 {
			err = fmt.Errorf("drain: %d connections were cut", n)
			p.log.Warn("drain ended early", "cut", n)
		}
	}
	p.finish()
	return err
}

// Close ends everything at once. Requests in flight are cut.
func (p *Proxy) Close() error {
	if p.stopAccepting() {
		p.frontend.Drain()
		p.frontend.Abort()
		p.finish()
	}
	return nil
}

// stopAccepting closes the listeners. false: it was done before.
func (p *Proxy) stopAccepting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.closed = true
	p.frontend.StopAccepting()
	return true
}

func (p *Proxy) finish() {
	close(p.stop)
	p.snapshot.Load().stop(nil)
	p.closeEngines()
	p.logRepeats(time.Now().Add(failureWindow))
	p.endLog(logPatience)
}
