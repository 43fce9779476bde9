package filewatch

import (
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// notifier has events about directories. All but its channels may be held by a file system that hangs.
type notifier struct {
	*fsnotify.Watcher
	dirs  []string
	works bool
}

func newNotifier(names []string) *notifier {
	n := &notifier{}
	for _, name := range names {
		if dir := filepath.Dir(name); !slices.Contains(n.dirs, dir) {
			n.dirs = append(n.dirs, dir)
		}
	}
	w, err := fsnotify.NewWatcher()
	if n.works = err == nil; !n.works { // out of descriptors or watches: looking has to do
		w = &fsnotify.Watcher{}
	}
	n.Watcher = w
	return n
}

// renew watches what is not watched: at first, and after a directory was replaced.
func (n *notifier) renew() {
	if !n.works || len(n.WatchList()) == len(n.dirs) {
		return
	}
	for _, dir := range n.dirs {
		_ = n.Add(dir)
	}
}

func (n *notifier) close() {
	if n.works {
		n.Close()
	}
}

// closeAfter closes it once nobody looks any more.
func (n *notifier) closeAfter(looks <-chan look) {
	<-looks
	n.close()
}
