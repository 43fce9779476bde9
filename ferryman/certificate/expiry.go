package certificate

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A certificate that has warnBefore left is warned of when it is loaded, and every warnAgain from then on.
const (
	warnBefore = 14 * 24 * time.Hour
	warnAgain  = 24 * time.Hour
)

// Set is the pairs in use, and who was warned of. The zero value is an empty set; its methods may be called from
// any goroutine.
type Set struct {
	mu    sync.Mutex // guards pairs
	pairs []*inUse
}

type inUse struct {
	*Pair
	warned *loaded   // what it held at the last warning
	at     time.Time // of that
}

// Add enters p, unless it is there.
func (s *Set) Add(p *Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.pairs, func(u *inUse) bool { return u.Pair == p }) {
		s.pairs = append(s.pairs, &inUse{Pair: p})
	}
}

// Expiries are the times by name.
func (s *Set) Expiries() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]time.Time, len(s.pairs))
	for _, u := range s.pairs {
		all[u.Name()] = u.Expires()
	}
	return all
}

// Warn logs what is due about certificates that near their end.
func (s *Set) Warn(log *slog.Logger, now time.Time) {
	s.due(now, func(name string, expires time.Time) {
		if now.Before(expires) {
			log.Warn("certificate expires soon: renew it", "name", name, "expires", expires, "days", int(expires.Sub(now).Hours()/24))
			return
		}
		log.Error("certificate has expired: renew it", "name", name, "expires", expires)
	})
}

// due calls warn for each certificate that nears its end or is past it, if that is due.
func (s *Set) due(now time.Time, warn func(name string, expires time.Time)) {
	s.mu.Lock()
	var due []*inUse
	for _, u := range s.pairs {
		holds := u.current.Load()
		if u.Expires().Sub(now) <= warnBefore && (holds != u.warned || now.Sub(u.at) >= warnAgain) {
			u.warned, u.at = holds, now
			due = append(due, u)
		}
	}
	s.mu.Unlock()
	for _, u := range due {
		warn(u.Name(), u.Expires())
	}
}
