package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// overtime is what the drain may take beyond its limit before the process ends anyway.
	overtime = 2 * time.Second
	// lastWord is how long the end by a second signal may take to say so.
	lastWord = 100 * time.Millisecond
)

// signalled is the cause of a context's end.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return s.String() }

// listenToSignals has obey follow the signals until stop is called. The first one to end ends the context.
func (s *service) listenToSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go s.obey(signals, cancel)
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// obey waits for nothing but signals, so that the second one to end is obeyed whatever else hangs.
func (s *service) obey(signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	ending := false
	for sig := range signals {
		switch {
		case sig == syscall.SIGHUP && (s.reloads || ending):
			select {
			case s.hangup <- struct{}{}:
			default: // one is due already
			}
		case !ending:
			ending = true
			cancel(signalled{sig})
			time.AfterFunc(drainLimit+overtime, func() { os.Exit(1) })
		default:
			time.AfterFunc(lastWord, func() { os.Exit(1) })
			s.log.Warn("second signal, requests in flight are cut")
			s.flush()
			os.Exit(1)
		}
	}
}
