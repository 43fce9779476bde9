package main

import (
	"bytes"
	"time"
)

// The loads that every workload is measured under.
const (
	light     = "light"
	heavy     = "heavy"
	saturated = "saturated"
)

// What the two fixed rates are, as shares of what the reference does when saturated.
const (
	lightShare = 0.15
	heavyShare = 0.60
)

// workload is a kind of request.
type workload struct {
	name, title string
	method      string
	path        string
	body        []byte

	tls, http2  bool
	noKeepAlive bool

	// Connections at a fixed rate and saturated. With HTTP/2 each carries streams requests at a time.
	fixed, closed, streams int
	// always is whether it belongs to a quick run too.
	quick bool
}

// smallBody is a POST's body, about as long as a short form.
var smallBody = bytes.Repeat([]byte("name=value&"), 23)

func workloads() []workload {
	return []workload{
		{name: "small", title: "GET, 66-byte answers", method: "GET", path: "/echo", fixed: 100, closed: 256, quick: true},
		{name: "16k", title: "GET, 16 KiB answers", method: "GET", path: "/bytes/16384", fixed: 100, closed: 128},
		{name: "1m", title: "GET, 1 MiB answers", method: "GET", path: "/bytes/1048576", fixed: 32, closed: 16},
		{name: "post", title: "POST, 253-byte bodies", method: "POST", path: "/echo", body: smallBody, fixed: 100, closed: 256},
		{name: "close", title: "GET, a connection per request", method: "GET", path: "/echo", noKeepAlive: true, fixed: 100, closed: 64},
		{name: "tls", title: "GET over TLS 1.3, HTTP/1.1", method: "GET", path: "/echo", tls: true, fixed: 100, closed: 256},
		{name: "h2", title: "GET over TLS 1.3, HTTP/2", method: "GET", path: "/echo", tls: true, http2: true, fixed: 25, closed: 32, streams: 8},
		{name: "many", title: "GET, 66-byte answers, many clients", method: "GET", path: "/echo", fixed: 1000, closed: 1000},
	}
}

// absentFrom says why a contender cannot take part in a workload; empty: it can.
func (w workload) absentFrom(name string, terminates bool) string {
	if w.tls && !terminates {
		return "speaks no TLS"
	}
	return ""
}

// warmup is what a block does before it is measured.
const warmup = 300 * time.Millisecond
