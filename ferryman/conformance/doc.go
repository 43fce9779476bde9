// Package conformance holds the wire-level tests of ferryman: a raw client on one side, scripted
// raw upstreams on the other, and the proxy between them.
//
// It has no code of its own, only tests. A test's name starts with the number of its case, so that
// a case is found by its number:
//
//	go test ./conformance -run 'TestCase118'
//
// FuzzDifferential gives what was forwarded to three parsers. Coverage of a whole proxy is not the same
// twice, so do not let the engine minimise for long:
//
//	go test ./conformance -run '^$' -fuzz FuzzDifferential -fuzztime 1h -fuzzminimizetime 1x
//
// Counts (rounds, connections, bytes) are sized for a small machine. FERRYMAN_CONFORMANCE_SCALE=10
// multiplies them; nothing is skipped, only smaller.
package conformance
