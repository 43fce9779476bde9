package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// The numbers of a run are gathered every quarter of a second and the live line is renewed every
// second.
const (
	gatherEvery = 250 * time.Millisecond
	lineEvery   = time.Second
)

// watch gathers the numbers of a run for the live line, the status and the metrics.
type watch struct {
	quit, done chan struct{}
}

func startWatch(r *engine.Runner, b result.Budgets, live io.Writer) *watch {
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(r, b, live)
	return w
}

func (w *watch) stop() {
	close(w.quit)
	<-w.done
}

func (w *watch) run(r *engine.Runner, b result.Budgets, live io.Writer) {
	defer close(w.done)
	ticker := time.NewTicker(gatherEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-w.quit:
			if live != nil {
				fmt.Fprint(live, "\r\033[K") // the report takes the line's place
			}
			return
		case <-ticker.C:
			if n%int(lineEvery/gatherEvery) != 0 {
				r.Collector().Peek()
				continue
			}
			numbers := r.Collector().Collect()
			if live != nil {
				fmt.Fprintf(live, "\r\033[K%s", liveLine(r.Elapsed(), numbers, b))
			}
		}
	}
}

func liveLine(elapsed time.Duration, l result.Live, b result.Budgets) string {
	if elapsed < 0 {
		return fmt.Sprintf("warming up, %s left", (-elapsed).Round(time.Second))
	}
	return fmt.Sprintf("%s  %d/s  p50 %s  p99 %s  errors %d  %s so far", elapsed.Round(time.Second),
		l.Recent.Requests*int64(time.Second)/int64(lineEvery), l.Recent.P50, l.Recent.P99, l.Errors, b.SoFar(l))
}

// liveWriter is where the live line goes: the terminal, if standard error is one.
func liveWriter(o options, stderr io.Writer) io.Writer {
	f, ok := stderr.(*os.File)
	if !ok || o.quiet {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return stderr
}
