package main

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// upstream is a server of the demo. It tells what it was asked.
type upstream struct {
	name string
	addr string // kept from the first start on

	mu     sync.Mutex
	server *http.Server // guarded by mu; nil: stopped
}

// start listens, unless it does already.
func (u *upstream) start() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", u.addr)
	if err != nil {
		return err
	}
	u.addr = l.Addr().String()
	u.server = &http.Server{Handler: u, ErrorLog: log.New(io.Discard, "", 0)} // standard error may block
	go u.serve(u.server, l)
	return nil
}

// serve ends with stop, which closes the server, and can tell of nothing else.
func (u *upstream) serve(server *http.Server, l net.Listener) { _ = server.Serve(l) }

// stop closes the listener and all connections, as when a process dies.
func (u *upstream) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.server != nil {
		u.server.Close()
		u.server = nil
	}
}

func (u *upstream) state() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.server == nil {
		return "stopped"
	}
	return "running"
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		io.WriteString(w, "ok\n")
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "upstream %s saw:\n%s %s\nHost: %s\n", u.name, r.Method, r.RequestURI, r.Host)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, b.String())
}
