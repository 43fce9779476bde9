package metrics

import (
	"io"
	"net/http"
)

// Admin serves /metrics, /healthz (the process is up) and /readyz (503 unless it is ready).
func (s *Set) Admin(ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.Handler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ready\n")
	})
	return mux
}
