package frontend

import (
	"net/http"
	"time"
)

// dateText is a Date field's value and the second that it holds for.
type dateText struct {
	second int64
	text   string
}

// date is the value of a Date field (RFC 9110 section 6.6.1), made once a second.
func (s *Server) date(now time.Time) string {
	second := now.Unix()
	if d := s.dated.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dateText{second, now.UTC().Format(http.TimeFormat)}
	s.dated.Store(d)
	return d.text
}
