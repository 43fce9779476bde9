package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/Bunty9/ferryman/ferryman/logqueue"
)

// flushLimit is how long the exit waits for whoever reads the output.
const flushLimit = time.Second

// unblock puts queues before both outputs: what serves must not wait for whoever reads them. Afterwards flush
// ends them.
func (p *program) unblock() {
	stdout := logqueue.NewWriter(p.stdout, func(lost uint64) []byte {
		return fmt.Appendf(nil, "%d lines are missing here, for nobody has read them\n", lost)
	})
	stderr := logqueue.NewWriter(p.stderr, func(lost uint64) []byte {
		var line bytes.Buffer
		slog.New(p.logHandler(&line, slog.LevelWarn)).Warn("log lines lost", "lines", lost)
		return line.Bytes()
	})
	p.stdout, p.stderr = stdout, stderr
	p.lost = func() uint64 { return stdout.Lost() + stderr.Lost() }
	p.flush = func() {
		var ends sync.WaitGroup
		ends.Go(func() { stdout.Close(flushLimit) })
		ends.Go(func() { stderr.Close(flushLimit) })
		ends.Wait()
	}
}

// logger writes to standard error, as asked for. Nothing waits for its reader: see unblock.
func (p *program) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(p.get("log-level"))); err != nil {
		panic("ferryman: log level passed validation: " + err.Error())
	}
	return slog.New(logqueue.Unblocked(p.logHandler(p.stderr, level), p.lost))
}

func (p *program) logHandler(w io.Writer, level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if p.get("log-format") == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}
