package config

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change is noticed by an event or at the next look. It is taken once it has rested for
// settle, because a file that is being written is not what its writer means; if it never rests,
// after limit, if valid. The sum stays below a second.
const (
	look   = 300 * time.Millisecond
	settle = 200 * time.Millisecond
	limit  = 500 * time.Millisecond
	gather = 20 * time.Millisecond // events after the first one that make the same look
)

// Watch calls on with each new content of the file at path, valid or not, until ctx ends, and
// returns ctx's error. It does not report what the file holds at the start, nor a touch that
// changes nothing. A value on poke (which may be nil) has the file reported at once and in any
// case. Calls of on do not overlap.
//
// Events only make it quick. The file is read several times a second as well: events get lost,
// and there are none for a bind mount or for the far end of a symbolic link.
func Watch(ctx context.Context, path string, poke <-chan struct{}, on func(Config, error)) error {
	dir := filepath.Dir(path)
	n, err := fsnotify.NewWatcher()
	if err != nil { // out of descriptors or watches: looking has to do
		n = &fsnotify.Watcher{}
	} else {
		defer n.Close()
	}
	w := watched{path: path, on: on}
	w.known, _ = w.read()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-poke:
			if !open {
				poke = nil
				continue
			}
			w.report(w.read())
		case e := <-n.Events:
			w.drain(n, e, time.After(gather))
		case <-n.Errors: //nolint:errcheck // events were lost: looking makes up for it
		case <-timer.C:
		}
		if err == nil && len(n.WatchList()) == 0 {
			_ = n.Add(dir) // again after the directory was replaced
		}
		timer.Reset(w.look(time.Now()))
	}
}

// watched is a file and what is known of it. Contents are compared, not times: two writes may
// share a time, and a touch is no change. An error to read is compared like a content.
type watched struct {
	path    string
	on      func(Config, error)
	known   []byte    // reported last
	stirred bool      // there was an event since the last look
	pending bool      // seen differs from known
	seen    []byte    // at the last look
	since   time.Time // seen is unchanged
	first   time.Time // there is something pending
}

// drain takes the events that come together with the first one.
func (w *watched) drain(n *fsnotify.Watcher, e fsnotify.Event, until <-chan time.Time) {
	for {
		w.stirred = w.stirred || filepath.Base(e.Name) == filepath.Base(w.path)
		select {
		case <-until:
			return
		case e = <-n.Events:
		case <-n.Errors: //nolint:errcheck // events were lost: looking makes up for it
		}
	}
}

func (w *watched) read() (content []byte, err error) {
	content, err = read(w.path)
	if err != nil {
		content = []byte("\x00" + err.Error())
	}
	return content, err
}

func (w *watched) report(content []byte, err error) {
	var c Config
	if err == nil {
		c, err = Parse(w.path, content)
	}
	w.known, w.pending = content, false
	w.on(c, err)
}

// look reports a change that has settled, and says when to look again.
func (w *watched) look(now time.Time) time.Duration {
	content, err := w.read()
	if bytes.Equal(content, w.known) {
		w.pending = false
		return look
	}
	if !w.pending {
		w.pending, w.first, w.seen = true, now, nil
	}
	if w.stirred || w.seen == nil || !bytes.Equal(content, w.seen) {
		w.stirred, w.seen, w.since = false, content, now
	}
	rested := now.Sub(w.since)
	late := err == nil && now.Sub(w.first) >= limit
	if late {
		_, err := Parse(w.path, content)
		late = err == nil
	}
	if rested < settle && !late {
		return settle - rested
	}
	w.report(content, err)
	return look
}
