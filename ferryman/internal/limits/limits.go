package limits

import "time"

var (
	// Head bounds a request head, from its first byte to its last.
	Head = 10 * time.Second
	// Handshake bounds a TLS handshake, from the accept.
	Handshake = 10 * time.Second
	// Unread bounds the bytes of HTTP/2 requests' bodies that wait for upstreams, on all connections together.
	Unread int64 = 256 << 20
)
