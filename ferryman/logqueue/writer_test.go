package logqueue

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 10 * time.Second

// sink is a destination that a test holds up and breaks.
type sink struct {
	mu     sync.Mutex // held while it blocks
	writes []string
	fail   error
	short  int // bytes that a failing write takes
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		s.writes = append(s.writes, string(p[:s.short]))
		return s.short, s.fail
	}
	s.writes = append(s.writes, string(p))
	return len(p), nil
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.writes, "")
}

// held reports that all that waited is being written, which a sink may hold up.
func (w *Writer) held() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) == 0
}

func notice(lost uint64) []byte { return fmt.Appendf(nil, "lost %d\n", lost) }

func writer(t *testing.T, to io.Writer) *Writer {
	t.Helper()
	w := NewWriter(to, notice)
	t.Cleanup(func() { w.Close(patience) })
	return w
}

func TestWriter_KeepsOrderAndLines(t *testing.T) {
	var s sink
	w := writer(t, &s)
	var want strings.Builder
	for i := range 5000 {
		line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i%200))
		n, err := io.WriteString(w, line)
		require.NoError(t, err)
		require.Equal(t, len(line), n)
		want.WriteString(line)
		if i%100 == 0 {
			require.True(t, w.Flush(patience))
		}
	}
	require.True(t, w.Flush(patience))
	require.Equal(t, want.String(), s.text())
	require.Zero(t, w.Lost())
}

// Case 285: the reader of the log stops, and comes back.
func TestWriter_WhatDoesNotFitIsDroppedWholeCountedAndTold(t *testing.T) {
	var s sink
	w := writer(t, &s)
	s.mu.Lock() // the reader stops
	line := strings.Repeat("a", 99) + "\n"
	io.WriteString(w, line)
	require.Eventually(t, w.held, patience, time.Millisecond, "the first line is on its way")
	began := time.Now()
	const n = 3 * (writerLimit / 100)
	for range n / 3 {
		io.WriteString(w, strings.Repeat(line, 3))
	}
	require.Less(t, time.Since(began), patience, "it waits for its reader")
	lost := w.Lost()
	require.Greater(t, lost, uint64(n-writerLimit/100-10))
	require.Zero(t, lost%3, "a chunk is dropped whole")
	require.False(t, w.Flush(time.Millisecond))
	s.mu.Unlock() // it is back
	require.True(t, w.Flush(patience))
	text := s.text()
	require.Equal(t, 1+n, strings.Count(text, line)+int(lost))
	told := fmt.Sprintf("lost %d\n", lost)
	require.Equal(t, 1, strings.Count(text, "lost "), "told once")
	require.True(t, strings.HasSuffix(text, line+told), "told behind what was written before")
	io.WriteString(w, "after\n")
	require.True(t, w.Flush(patience))
	require.True(t, strings.HasSuffix(s.text(), told+"after\n"))
	require.Equal(t, lost, w.Lost())
}

// A pipe without a reader fails each write at once: that must be no loop.
func TestWriter_FailureIsLostAndNotTriedAgain(t *testing.T) {
	s := sink{fail: errors.New("broken pipe")}
	w := writer(t, &s)
	for range 10 {
		io.WriteString(w, "one\ntwo\n")
		require.True(t, w.Flush(patience))
	}
	require.Len(t, s.writes, 10)
	require.EqualValues(t, 20, w.Lost())
	s.mu.Lock()
	s.fail, s.writes = nil, nil
	s.mu.Unlock()
	io.WriteString(w, "three\n")
	require.True(t, w.Flush(patience))
	require.Equal(t, "three\nlost 20\n", s.text())
}

// A disk that is full takes the beginning of a line.
func TestWriter_TornLineEndsBeforeTheNext(t *testing.T) {
	s := sink{fail: errors.New("no space left on device"), short: 5}
	w := writer(t, &s)
	io.WriteString(w, "one\ntwo\n")
	require.True(t, w.Flush(patience))
	require.EqualValues(t, 1, w.Lost())
	s.mu.Lock()
	s.fail = nil
	s.mu.Unlock()
	io.WriteString(w, "three\n")
	require.True(t, w.Flush(patience))
	require.Equal(t, "one\nt\nthree\nlost 1\n", s.text())
}

// Others may write to the same pipe, and a pipe takes 4 KiB in one piece.
func TestWriter_WritesWholeLinesOfAtMostAPipesPiece(t *testing.T) {
	var s sink
	w := writer(t, &s)
	s.mu.Lock()
	for i := range 200 {
		io.WriteString(w, strings.Repeat("b", i)+"\n")
	}
	io.WriteString(w, strings.Repeat("c", 3*pieceSize)+"\n")
	io.WriteString(w, "d\n")
	s.mu.Unlock()
	require.True(t, w.Flush(patience))
	require.Less(t, len(s.writes), 20, "lines are gathered")
	for _, piece := range s.writes {
		require.True(t, strings.HasSuffix(piece, "\n"))
		require.True(t, len(piece) <= pieceSize || strings.Count(piece, "\n") == 1, "%d bytes", len(piece))
	}
}

func TestWriter_CloseIsBoundedAndFlushes(t *testing.T) {
	var s sink
	w := NewWriter(&s, notice)
	io.WriteString(w, "last\n")
	w.Close(patience)
	require.Equal(t, "last\n", s.text())
	<-w.ended
	io.WriteString(w, "late\n")
	require.EqualValues(t, 1, w.Lost())
	w.Close(patience)

	stuck := NewWriter(&s, notice)
	s.mu.Lock()
	io.WriteString(stuck, "never\n")
	began := time.Now()
	stuck.Close(20 * time.Millisecond)
	require.Less(t, time.Since(began), patience)
	s.mu.Unlock()
	<-stuck.ended
}

func TestWriter_DoesNotAllocate(t *testing.T) {
	w := writer(t, io.Discard)
	line := []byte(strings.Repeat("x", 300) + "\n")
	for range 1000 { // the two buffers
		w.Write(line)
	}
	require.True(t, w.Flush(patience))
	require.Less(t, testing.AllocsPerRun(10_000, func() { w.Write(line) }), 0.01)
}

func TestWriter_ManyWritersLoseNothingUnnoticed(t *testing.T) {
	var s sink
	w := writer(t, &s)
	const writers, each = 8, 3000
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for n := range each {
				fmt.Fprintf(w, "%d %d\n", i, n)
			}
		})
	}
	writing.Wait()
	require.True(t, w.Flush(patience))
	next, got := [writers]int{}, 0
	for line := range strings.Lines(s.text()) {
		var i, n int
		if k, _ := fmt.Sscanf(line, "%d %d\n", &i, &n); k == 2 {
			require.GreaterOrEqual(t, n, next[i], "order")
			next[i] = n + 1
			got++
		}
	}
	require.Equal(t, writers*each, got+int(w.Lost()))
}

func BenchmarkWriter(b *testing.B) {
	w := NewWriter(io.Discard, notice)
	defer w.Close(time.Second)
	line := []byte(strings.Repeat("x", 300) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		w.Write(line)
	}
}
