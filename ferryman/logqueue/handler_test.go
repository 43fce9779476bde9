package logqueue

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func textTo(s *sink, level slog.Leveler) slog.Handler {
	return slog.NewTextHandler(s, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

func TestHandler_PassesRecordsOnInOrder(t *testing.T) {
	var s sink
	h := NewHandler(textTo(&s, slog.LevelInfo))
	defer h.Close(patience)
	log := slog.New(h)
	log.Info("one", "error", errors.New("x"))
	log.With("a", 1).WithGroup("g").Warn("two", "b", 2)
	log.Debug("not asked for")
	require.True(t, h.Flush(patience))
	require.Equal(t, "level=INFO msg=one error=x\nlevel=WARN msg=two a=1 g.b=2\n", s.text())
	require.Zero(t, h.Lost())
}

func TestHandler_FollowsTheLevelBehind(t *testing.T) {
	var s sink
	var level slog.LevelVar
	h := NewHandler(textTo(&s, &level))
	defer h.Close(patience)
	enabled := func(l slog.Level) bool { return h.Enabled(context.Background(), l) }
	require.Eventually(t, func() bool { return !enabled(slog.LevelDebug) && enabled(slog.LevelInfo) }, patience, time.Millisecond)
	level.Set(slog.LevelError + 4)
	require.Eventually(t, func() bool { return !enabled(slog.LevelError) }, patience, time.Millisecond)
	level.Set(slog.LevelDebug)
	require.Eventually(t, func() bool { return enabled(slog.LevelDebug) }, patience, time.Millisecond)
}

// blocking is a handler all of whose methods block.
type blocking struct{ until chan struct{} }

func (b blocking) Enabled(context.Context, slog.Level) bool  { <-b.until; return true }
func (b blocking) Handle(context.Context, slog.Record) error { <-b.until; return nil }
func (b blocking) WithAttrs([]slog.Attr) slog.Handler        { return b }
func (b blocking) WithGroup(string) slog.Handler             { return b }

// Case 285, for a library's user.
func TestHandler_NeverWaitsForTheOneBehind(t *testing.T) {
	b := blocking{make(chan struct{})}
	h := NewHandler(b)
	log := slog.New(h)
	for range 10 * handlerLimit {
		log.Info("line")
	}
	require.EqualValues(t, 9*handlerLimit, h.Lost())
	require.False(t, h.Flush(time.Millisecond))
	h.Close(time.Millisecond)
	close(b.until)
	<-h.ended
}

// counting fails as it is told.
type counting struct {
	fail  func() error
	lines atomic.Int64
	last  atomic.Pointer[slog.Record]
}

func (c *counting) Enabled(context.Context, slog.Level) bool { return true }
func (c *counting) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *counting) WithGroup(string) slog.Handler            { return c }
func (c *counting) Handle(_ context.Context, r slog.Record) error {
	if c.fail != nil {
		return c.fail()
	}
	c.lines.Add(1)
	c.last.Store(&r)
	return nil
}

func TestHandler_FailuresAndPanicsBehindAreLostAndTold(t *testing.T) {
	c := &counting{fail: func() error { return errors.New("no") }}
	h := NewHandler(c)
	defer h.Close(patience)
	log := slog.New(h)
	log.Info("one")
	require.True(t, h.Flush(patience))
	c.fail = func() error { panic("no") }
	log.Info("two")
	require.True(t, h.Flush(patience))
	require.EqualValues(t, 2, h.Lost())
	c.fail = nil
	log.Info("three")
	require.True(t, h.Flush(patience))
	require.EqualValues(t, 2, c.lines.Load(), "the line and one that tells")
	last := c.last.Load()
	require.Equal(t, "log lines lost", last.Message)
	last.Attrs(func(a slog.Attr) bool {
		require.Equal(t, "lines=2", a.String())
		return true
	})
}

func TestQueued_QueuesWhatMayBlockOnce(t *testing.T) {
	var s sink
	w := NewWriter(&s, notice)
	defer w.Close(patience)
	whole := Unblocked(slog.NewTextHandler(w, nil), w.Lost)
	h, lost, end := Queued(whole)
	require.Same(t, whole, h)
	require.Zero(t, lost())
	end(patience)

	plain := slog.NewTextHandler(&s, nil)
	h, _, end = Queued(plain)
	again, _, _ := Queued(h)
	require.Same(t, h, again)
	slog.New(h).Info("x")
	end(patience)
	require.Contains(t, s.text(), "msg=x")
}
