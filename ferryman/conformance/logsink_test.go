package conformance

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// logSink keeps what the proxy logs.
type logSink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logSink) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logSink) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logSink) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// count is the number of lines that contain every part.
func (l *logSink) count(parts ...string) int {
	n := 0
line:
	for s := range strings.Lines(l.text()) {
		for _, p := range parts {
			if !strings.Contains(s, p) {
				continue line
			}
		}
		n++
	}
	return n
}

// noPanic is O8.
func (l *logSink) noPanic(t testing.TB) {
	assert.NotContains(t, strings.ToLower(l.text()), "panic", "O8: a panic was logged")
}
