package logqueue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// handlerLimit is how many records wait at most, handlerKeep how many of them memory is kept for.
	handlerLimit, handlerKeep = 1000, 64
	// levelAge is how long the level of the handler behind is remembered.
	levelAge = time.Second
)

// Handler passes records on to another slog.Handler, which may block for ever, in its own goroutine. NewHandler
// makes it. The handler behind gets no context, and is asked for its level in the background.
type Handler struct {
	*records
	behind slog.Handler
}

// records is what a Handler shares with those that are derived from it.
type records struct {
	queue[record]
	level  atomic.Int64 // the lowest that is enabled; written by the queue's goroutine
	ticker *time.Ticker
}

type record struct {
	behind slog.Handler
	slog.Record
}

// NewHandler returns a Handler before h.
func NewHandler(h slog.Handler) *Handler {
	r := &records{ticker: time.NewTicker(levelAge)}
	r.level.Store(int64(slog.LevelDebug - 1<<16)) // until h was asked, all that comes waits
	r.limit, r.keep = handlerLimit, handlerKeep
	r.lines = func(chunk []record) uint64 { return uint64(len(chunk)) }
	r.deliver = deliver
	r.notice = func(lost uint64) bool {
		line := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines lost", 0)
		line.AddAttrs(slog.Uint64("lines", lost))
		return len(deliver([]record{{h, line}})) == 0
	}
	r.beat, r.onBeat = r.ticker.C, func() { r.askLevel(h) }
	r.start()
	return &Handler{r, h}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return int64(level) >= h.level.Load()
}

// Handle implements slog.Handler. It never waits and never fails.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	h.put(record{h.behind, r.Clone()})
	return nil
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.records, h.behind.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.records, h.behind.WithGroup(name)}
}

// Lost is how many records were dropped so far.
func (h *Handler) Lost() uint64 { return h.lostLines() }

// Flush waits until what was handled before is passed on, at most for limit.
func (h *Handler) Flush(limit time.Duration) bool { return h.flush(time.After(limit)) }

// Close waits like Flush and ends the Handler: what is handled afterwards is lost.
func (h *Handler) Close(limit time.Duration) {
	h.ticker.Stop()
	h.close(limit)
}

// askLevel asks the handler behind from which level on it takes records.
func (r *records) askLevel(h slog.Handler) {
	defer func() { _ = recover() }() // it keeps the level that it had
	for level := slog.LevelDebug; level <= slog.LevelError; level += slog.LevelInfo - slog.LevelDebug {
		if h.Enabled(context.Background(), level) {
			r.level.Store(int64(level))
			return
		}
	}
	r.level.Store(int64(slog.LevelError + 1))
}

// deliver returns the records that their handler has failed to take.
func deliver(batch []record) (failed []record) {
	for _, r := range batch {
		if !pass(r) {
			failed = append(failed, r)
		}
	}
	return failed
}

func pass(r record) (passed bool) {
	defer func() {
		if recover() != nil {
			passed = false
		}
	}()
	ctx := context.Background()
	return !r.behind.Enabled(ctx, r.Level) || r.behind.Handle(ctx, r.Record) == nil
}

// Unblocked says of h that it writes to Writers alone, so that nobody needs to queue its records once more.
// lost is how many lines these have dropped.
func Unblocked(h slog.Handler, lost func() uint64) slog.Handler { return &unblocked{h, lost} }

type unblocked struct {
	slog.Handler
	lost func() uint64
}

// Queued returns a handler before h that never waits, where h is none already: how many lines it has lost,
// and its end, which waits for limit at most.
func Queued(h slog.Handler) (_ slog.Handler, lost func() uint64, end func(limit time.Duration)) {
	switch h := h.(type) {
	case *unblocked:
		return h, h.lost, func(time.Duration) {}
	case *Handler:
		return h, h.Lost, func(limit time.Duration) { h.Flush(limit) }
	}
	q := NewHandler(h)
	return q, q.Lost, q.Close
}
