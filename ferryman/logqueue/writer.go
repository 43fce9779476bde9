package logqueue

import (
	"bytes"
	"io"
	"time"
)

const (
	// writerLimit is how many bytes wait at most.
	writerLimit = 256 << 10
	// writerKeep is how large a buffer may be that is kept while there is nothing to write.
	writerKeep = 64 << 10
	// pieceSize is what is written at once, in whole lines: a pipe takes so much without tearing it apart,
	// whoever else writes there (PIPE_BUF).
	pieceSize = 4 << 10
)

// Writer passes lines on to another writer, which may block for ever. NewWriter makes it; all methods may be
// called from any goroutine. Each Write should be one line or several.
type Writer struct{ queue[byte] }

// NewWriter returns a Writer before w, which nobody else should write to. notice makes the line that tells
// how many were lost.
func NewWriter(w io.Writer, notice func(lost uint64) []byte) *Writer {
	d := &destination{to: w}
	q := &Writer{queue[byte]{limit: writerLimit, keep: writerKeep, lines: lines, deliver: d.write}}
	q.notice = func(lost uint64) bool { return len(d.write(notice(lost))) == 0 }
	q.start()
	return q
}

// Write takes all of p or, where there is no room, nothing. It never waits and never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.put(p...)
	return len(p), nil
}

// Lost is how many lines were dropped so far.
func (w *Writer) Lost() uint64 { return w.lostLines() }

// Flush waits until what was written before is out, at most for limit.
func (w *Writer) Flush(limit time.Duration) bool { return w.flush(time.After(limit)) }

// Close waits like Flush and ends the Writer: what is written afterwards is lost. It does not close the writer
// behind.
func (w *Writer) Close(limit time.Duration) { w.close(limit) }

// lines counts a beginning of a line, too.
func lines(chunk []byte) uint64 {
	n := bytes.Count(chunk, []byte("\n"))
	if len(chunk) > 0 && chunk[len(chunk)-1] != '\n' {
		n++
	}
	return uint64(n)
}

// destination is where lines go in the end.
type destination struct {
	to   io.Writer
	torn bool // it holds the beginning of a line that failed
}

// write returns what could not be written.
func (d *destination) write(batch []byte) (failed []byte) {
	for len(batch) > 0 {
		if d.torn {
			if _, err := d.to.Write([]byte("\n")); err != nil {
				return batch
			}
			d.torn = false
		}
		n := piece(batch)
		if wrote, err := d.to.Write(batch[:n]); err != nil {
			d.torn = wrote > 0 && batch[wrote-1] != '\n'
			return batch[wrote:]
		}
		batch = batch[n:]
	}
	return nil
}

// piece is how much of a batch is written at once: whole lines, but for one that is longer.
func piece(batch []byte) int {
	if len(batch) <= pieceSize {
		return len(batch)
	}
	if end := bytes.LastIndexByte(batch[:pieceSize], '\n'); end >= 0 {
		return end + 1
	}
	if end := bytes.IndexByte(batch, '\n'); end >= 0 {
		return end + 1
	}
	return len(batch)
}
