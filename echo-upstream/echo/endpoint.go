package echo

import (
	"bytes"
	"strconv"
)

// endpoint numbers what the data port can do. The order is that of the metrics page.
type endpoint int

const (
	describeEndpoint endpoint = iota
	echoEndpoint
	healthEndpoint
	bytesEndpoint
	chunkedEndpoint
	streamEndpoint
	statusEndpoint
	trailersEndpoint
	endpoints
)

var endpointNames = [endpoints]string{"describe", "echo", "health", "bytes", "chunked", "stream", "status", "trailers"}

// maxBody bounds /bytes and /chunked.
const maxBody = 1 << 30

// choose finds the endpoint of a request target and, for those that have one, its number. It looks
// at the raw bytes: nothing is decoded, so a proxy that rewrites a path shows.
func choose(target []byte) (e endpoint, n int) {
	path := target
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	if string(path) == "/echo" {
		return echoEndpoint, 0
	}
	if string(path) == "/health" {
		return healthEndpoint, 0
	}
	rest, last := cutLast(path)
	switch string(last) {
	case "echo":
		return echoEndpoint, 0
	case "stream":
		return streamEndpoint, 0
	case "trailers":
		return trailersEndpoint, 0
	}
	n, ok := number(last)
	if !ok {
		return describeEndpoint, 0
	}
	_, name := cutLast(rest)
	switch string(name) {
	case "bytes":
		return bytesEndpoint, n
	case "chunked":
		return chunkedEndpoint, n
	case "status":
		return statusEndpoint, n
	}
	return describeEndpoint, 0
}

// cutLast splits off the last segment of a path. Without a slash there is none.
func cutLast(path []byte) (rest, last []byte) {
	i := bytes.LastIndexByte(path, '/')
	if i < 0 {
		return nil, nil
	}
	return path[:i], path[i+1:]
}

// number reads digits only: no sign, no more than maxBody.
func number(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 10 || b[0] < '0' || b[0] > '9' {
		return 0, false
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil && n <= maxBody
}
