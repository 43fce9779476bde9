// Package breaker decides whether a call to something that may be broken should be tried at all. It
// guards any call; it starts no goroutine, holds no lock, calls nobody back and never reads a clock.
//
//	b := breaker.New(breaker.Config{Threshold: 3, Cooldown: 30 * time.Second})
//
//	ticket, ok := b.Allow(time.Now())
//	if !ok {
//		return errUnavailable // for another b.RetryAfter(time.Now())
//	}
//	defer ticket.Release(time.Now()) // no verdict (a panic, say): the next call may probe
//	if err := call(); err != nil {
//		ticket.Failure(time.Now())
//		return err
//	}
//	ticket.Success(time.Now())
//
// breaker.go is all of it: Allow and what a Ticket may be told, then the chain of epochs behind them.
package breaker
