package echo

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxFaultBytes bounds what PUT /fault reads.
const maxFaultBytes = 16 << 10

func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /fault", func(w http.ResponseWriter, _ *http.Request) { s.showFault(w) })
	mux.HandleFunc("PUT /fault", s.putFault)
	mux.HandleFunc("DELETE /fault", func(w http.ResponseWriter, _ *http.Request) {
		s.setFault(Fault{})
		s.showFault(w)
	})
	return mux
}

// putFault replaces the fault whole. What is wrong with the request is answered in one line and
// changes nothing.
func (s *Server) putFault(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFaultBytes))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			http.Error(w, "the body is too large for a fault: 16 KiB at most", http.StatusBadRequest)
			return
		}
		http.Error(w, "the body broke off: send it again", http.StatusBadRequest)
		return
	}
	f, err := ParseFault(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.setFault(f)
	s.showFault(w)
}

func (s *Server) showFault(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.fault()) // the client left: nothing to do
}
