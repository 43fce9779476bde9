// Package upstream holds what ferryman knows of one upstream: its address, its circuit breaker and
// its idle connections.
//
// The rules of the pool: a connection is handed out only if nothing can be read from it; it comes
// back only after a complete exchange, with keep-alive on both sides and an empty buffer; whatever
// is in doubt is closed. Each executor has a stack of its own, newest on top, so that the surplus
// grows old at the bottom.
//
// It parses nothing and retries nothing; both are for the caller to decide.
package upstream
