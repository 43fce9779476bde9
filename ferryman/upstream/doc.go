// Package upstream holds what ferryman knows of one upstream: its address, its circuit breaker and its connections.
//
// A connection is handed out only if nothing can be read from it; it returns to the pool only after a complete
// exchange, with keep-alive on both sides and an empty buffer; whatever is in doubt is closed.
//
// It parses nothing, retries nothing and does not ask the breaker: these are for the caller. Who waits for a
// connection, and in which order, is in package pool.
//
//	conn := u.Idle(executor, sure)
//	if conn == nil {
//		waiter.Reset(u, executor, false, sure)
//		conn, err = waiter.Connection(timeout)
//	}
//	...
//	conn.Put(executor) // or Discard
//
// Read upstream.go, then conn.go for when a connection is fit for use and stray.go for upstreams that send too much.
package upstream
