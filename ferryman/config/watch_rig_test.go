package config

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inTime is how soon a change must be seen, patience how long a busy machine may take.
const inTime, patience = time.Second, 15 * time.Second

// body is a configuration that can be told from others by its threshold.
func body(threshold int) string {
	return fmt.Sprintf("failure_threshold = %d\n[[routes]]\nprefix = \"/\"\nupstream = \"http://127.0.0.1:8000\"\n", threshold)
}

type seen struct {
	threshold int
	err       error
}

type rig struct {
	t    *testing.T
	path string
	seen chan seen
	poke chan struct{}
	stop func() // waits until Watch has returned

	saved    time.Time     // when the last save began
	slow     bool          // it took so long that its steps are contents of their own
	quickest time.Duration // from a save to its report
}

// start watches path, which holds body(1) unless it is there already.
func start(t *testing.T, path string) *rig {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		write(t, path, body(1))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &rig{t: t, path: path, seen: make(chan seen, 10_000), poke: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, path, r.poke, func(c Config, err error) { r.seen <- seen{c.FailureThreshold, err} })
	}()
	r.stop = func() {
		require.Less(t, r.quickest, inTime)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		done <- context.Canceled
	}
	t.Cleanup(r.stop)
	for range 2 { // after the first Watch knows the content, at the second it has its watch
		r.save(func() { r.poke <- struct{}{} })
		r.next(1)
	}
	r.quickest = 0
	return r
}

// save runs what changes the file. A machine that is busy may stop it half way for longer than a file has to
// rest: then what is there is reported, and rightly.
func (r *rig) save(f func()) {
	r.saved = time.Now()
	f()
	r.slow = time.Since(r.saved) >= settle
}

// next is the next report, which has to hold the threshold.
func (r *rig) next(threshold int) {
	r.t.Helper()
	s := r.report(func(s seen) bool { return s.err == nil && s.threshold == threshold })
	require.NoError(r.t, s.err)
	require.Equal(r.t, threshold, s.threshold)
}

func (r *rig) nextError(text string) {
	r.t.Helper()
	s := r.report(func(s seen) bool { return s.err != nil && strings.Contains(s.err.Error(), text) })
	require.ErrorContains(r.t, s.err, text)
}

// report returns the next one, or the first that is wanted if the save was slow.
func (r *rig) report(wanted func(seen) bool) (s seen) {
	r.t.Helper()
	for {
		select {
		case s = <-r.seen:
		case <-time.After(patience):
			require.Fail(r.t, "not seen")
		}
		if !r.slow || wanted(s) {
			break
		}
	}
	if took := time.Since(r.saved); r.quickest == 0 || took < r.quickest {
		r.quickest = took
	}
	return s
}

// forgive takes what else a slow save made.
func (r *rig) forgive() {
	if r.slow {
		pass(look + settle)
	}
	for r.slow && len(r.seen) > 0 {
		<-r.seen
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func pass(d time.Duration) { <-time.After(d) }
