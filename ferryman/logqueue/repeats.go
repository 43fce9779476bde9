package logqueue

import (
	"sync"
	"time"
)

// Repeats keeps trouble that goes on to one line in a while. The first of a kind is told at once; those that
// follow within the window are counted, and told together at its end, with what the last of them said. The
// zero value with a Window is ready; its methods may be called from any goroutine.
type Repeats[K comparable, V any] struct {
	Window time.Duration

	mu    sync.Mutex // guards kinds; nothing is told under it
	kinds map[K]*repeated[V]
}

type repeated[V any] struct {
	until time.Time // the window's end
	n     int       // since its beginning
	last  V
}

// maxKinds bounds what is remembered. Kinds beyond it are not told apart from repeats.
const maxKinds = 1000

// First reports whether k is to be told now.
func (r *Repeats[K, V]) First(k K, v V, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.kinds[k]; known != nil {
		known.n++
		known.last = v
		return false
	}
	if r.kinds == nil {
		r.kinds = make(map[K]*repeated[V])
	}
	if len(r.kinds) >= maxKinds {
		return false
	}
	r.kinds[k] = &repeated[V]{until: now.Add(r.Window), last: v}
	return true
}

// Due tells what has been repeated in windows that are over. Trouble that goes on has a line for each window.
func (r *Repeats[K, V]) Due(now time.Time, tell func(k K, last V, n int)) {
	r.mu.Lock()
	var due map[K]repeated[V]
	for k, known := range r.kinds {
		switch {
		case now.Before(known.until):
		case known.n == 0:
			delete(r.kinds, k)
		default:
			if due == nil {
				due = make(map[K]repeated[V])
			}
			due[k] = *known
			*known = repeated[V]{until: now.Add(r.Window), last: known.last}
		}
	}
	r.mu.Unlock()
	for k, known := range due {
		tell(k, known.last, known.n)
	}
}
