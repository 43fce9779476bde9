package ferryman

import (
	"context"
	"log/slog"
	"time"

	"github.com/Bunty9/ferryman/ferryman/logqueue"
	"github.com/Bunty9/ferryman/ferryman/upstream"
)

const (
	// logPatience is how long the end of a proxy waits for what is queued for its log.
	logPatience = time.Second
	// failureWindow is how long failures of one kind are gathered in one line.
	failureWindow = 10 * time.Second
)

type (
	failureKind struct{ upstream, cause string }
	failureSeen struct {
		status int
		err    error
	}
)

// startLog puts a queue before the logger: nobody on an event loop, or with a lock, waits for its reader.
func (p *Proxy) startLog(logger *slog.Logger) {
	p.failures.Window = failureWindow
	if logger == nil {
		logger = slog.New(logqueue.Unblocked(slog.DiscardHandler, func() uint64 { return 0 }))
	}
	queued, lost, end := logqueue.Queued(logger.Handler())
	p.log, p.endLog = slog.New(queued), end
	p.metrics.LinesLost(func() map[string]uint64 { return map[string]uint64{"main": lost()} })
}

// observer implements exchange.Observer.
type observer struct{ *Proxy }

// CircuitChanged logs a change of state, which is rare enough for a line each. err may be nil.
func (p observer) CircuitChanged(u *upstream.Upstream, cause string, err error) {
	line := []any{"upstream", u.Addr(), "to", u.Breaker().State().String(), "cause", cause}
	if err != nil {
		line = append(line, "error", err)
	}
	p.log.Info("circuit changed", line...)
}

// RequestFailed logs a request that an upstream failed. Of each kind there may be many: see logRepeats.
func (p observer) RequestFailed(u *upstream.Upstream, status int, cause string, err error) {
	level := slog.LevelDebug
	if p.failures.First(failureKind{u.Addr(), cause}, failureSeen{status, err}, time.Now()) {
		level = slog.LevelInfo
	}
	if ctx := context.Background(); p.log.Enabled(ctx, level) {
		p.log.Log(ctx, level, "request failed", "upstream", u.Addr(), "status", status, "cause", cause, "error", err)
	}
}

// logRepeats reports the failures that had no line of their own.
func (p *Proxy) logRepeats(now time.Time) {
	p.failures.Due(now, func(k failureKind, last failureSeen, n int) {
		p.log.Info("request failed", "upstream", k.upstream, "status", last.status, "cause", k.cause, "error", last.err, "repeated", n)
	})
}
