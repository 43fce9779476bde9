package filewatch

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change is noticed by an event or at the next look. It is taken once it has rested for Settle, because a
// file that is being written is not what its writer means; if it never rests, after limit, if valid. The sum
// stays below a second.
const (
	Look   = 300 * time.Millisecond
	Settle = 200 * time.Millisecond
	limit  = 500 * time.Millisecond
	gather = 20 * time.Millisecond // events after the first one that make the same look
)

// Files are read and watched together.
type Files struct {
	Names []string
	Kind  string // what they are to hold, for messages: "a configuration"
	MiB   int64  // the most that each may hold
	// Known is what they held when the caller read them. nil: what the first look finds.
	Known [][]byte
	// Valid says of contents that never rest whether they may be taken as they are. nil: never.
	Valid func(contents [][]byte) bool
}

// Watch calls on with each new content of the files, or the error of the first one that cannot be read, until
// ctx ends, and returns ctx's error. It does not report what is Known, nor a touch that changes nothing. A
// value on poke (which may be nil) has the files reported at once and in any case. Calls of on do not overlap.
// Want of descriptors or memory is never reported: the look is repeated.
//
// Events only make it quick. The files are read several times a second as well: events get lost, and there are
// none for a bind mount or for the far end of a symbolic link.
//
// A look has a goroutine of its own, for a file system may hang. There is one at a time, and the end of ctx
// does not wait for it.
func Watch(ctx context.Context, f Files, poke <-chan struct{}, on func(contents [][]byte, err error)) error {
	n := newNotifier(f.Names)
	w := watched{Files: f, on: on}
	timer := time.NewTimer(0)
	defer timer.Stop()
	looks := make(chan look, 1)
	for {
		go w.look(n, looks)
		select {
		case <-ctx.Done():
			go n.closeAfter(looks)
			return ctx.Err()
		case seen := <-looks:
			timer.Reset(w.judge(seen, time.Now()))
		}
		select {
		case <-ctx.Done():
			n.close()
			return ctx.Err()
		case _, open := <-poke:
			if !open {
				poke = nil
			}
			w.due = w.due || open
		case e := <-n.Events:
			w.drain(n, e, time.After(gather))
		case <-n.Errors: //nolint:errcheck // events were lost: looking makes up for it
		case <-timer.C:
		}
	}
}

// look is what the files held. An error to read is compared like a content.
type look struct {
	contents [][]byte
	err      error
}

func (l look) same(contents [][]byte) bool {
	return contents != nil && slices.EqualFunc(l.text(), contents, bytes.Equal)
}

func (l look) text() [][]byte {
	if l.err != nil {
		return [][]byte{[]byte("\x00" + l.err.Error())}
	}
	return l.contents
}

// watched is the files and what is known of them. Contents are compared, not times: two writes may share a
// time, and a touch is no change.
type watched struct {
	Files
	on      func([][]byte, error)
	due     bool      // to be reported whatever it is
	stirred bool      // there was an event since the last look
	pending bool      // seen differs from what is known
	seen    [][]byte  // at the last look
	since   time.Time // seen is unchanged
	first   time.Time // there is something pending
}

func (w *watched) look(n *notifier, looks chan<- look) {
	n.renew()
	var l look
	for _, name := range w.Names {
		content, err := Read(name, w.Kind, w.MiB)
		if err != nil {
			l.err = err
			break
		}
		l.contents = append(l.contents, content)
	}
	looks <- l
}

// judge reports a change that has settled, and says when to look again.
func (w *watched) judge(l look, now time.Time) time.Duration {
	switch {
	case short(l.err):
		return Look
	case w.due:
		w.report(l)
		return Look
	case w.Known == nil:
		w.Known = l.text()
		return Look
	case l.same(w.Known):
		w.pending = false
		return Look
	}
	if !w.pending {
		w.pending, w.first, w.seen = true, now, nil
	}
	if w.stirred || !l.same(w.seen) {
		w.stirred, w.seen, w.since = false, l.text(), now
	}
	rested := now.Sub(w.since)
	if rested < Settle && !w.late(l, now) {
		return Settle - rested
	}
	w.report(l)
	return Look
}

func (w *watched) late(l look, now time.Time) bool {
	return l.err == nil && w.Valid != nil && now.Sub(w.first) >= limit && w.Valid(l.contents)
}

func (w *watched) report(l look) {
	w.Known, w.pending, w.due = l.text(), false, false
	w.on(l.contents, l.err)
}

// drain takes the events that come together with the first one.
func (w *watched) drain(n *notifier, e fsnotify.Event, until <-chan time.Time) {
	for {
		for _, name := range w.Names {
			w.stirred = w.stirred || filepath.Base(e.Name) == filepath.Base(name)
		}
		select {
		case <-until:
			return
		case e = <-n.Events:
		case <-n.Errors: //nolint:errcheck // events were lost: looking makes up for it
		}
	}
}
