// Package conformance holds the wire-level tests of ferryman: a raw client on one side, scripted
// raw upstreams on the other, and the proxy between them.
//
// It has no code of its own, only tests. A test's name starts with the number of its case, so that
// a case is found by its number:
//
//	go test ./conformance -run 'TestCase118'
//
// A test of several cases is named after the first and the last or the next, and its comment says which
// they are: TestCase191To201, "Cases 191, 193 to 199 and 201".
//
// FuzzDifferential gives what was forwarded to three parsers. Coverage of a whole proxy is not the same
// twice, so do not let the engine minimise for long:
//
//	go test ./conformance -run '^$' -fuzz FuzzDifferential -fuzztime 1h -fuzzminimizetime 1x
//
// Counts (rounds, connections, bytes) are sized for a small machine. FERRYMAN_CONFORMANCE_SCALE=10
// multiplies them; nothing is skipped, only smaller. FERRYMAN_SOAK=12h is how long case 282 takes.
//
// What needs a process, a file or a clock of one's own is held elsewhere in this module:
//
//	200                 route/tree_test.go: time and length of a path
//	206, 209, 216, 219  breaker/invariant_test.go, breaker/model_test.go: to the letter, with a clock
//	223, 226, 227, 230  health/time_test.go: by the second, with a clock
//	231 to 233          config/watch_test.go: every way to save a file
//	234 to 236          config/watch_test.go; cmd/ferryman/broken_test.go, from the file to the client
//	237                 config/watch_test.go; config/watch_linux_test.go, by what the process has
//	243                 cmd/ferryman/serve_test.go, beside the test here
//	245                 cmd/ferryman/serve_test.go: SIGHUP
//	252, 255            cmd/ferryman/serve_test.go: the 25 seconds in real time
//	253                 cmd/ferryman/serve_test.go: exit status, the second signal
//	257                 cmd/ferryman/serve_test.go
//	284                 cmd/ferryman/kill_test.go
//
// Case 283 is no test of its own: the workflows run all of them under the race detector, and vet and the
// vulnerability check over all modules. Case 281 is also what "go test -count=3 ./conformance" shows:
// TestMain counts goroutines and descriptors of the process before and after. Case 263 is measured with
// some hundred connections and without the race detector, case 271 for seconds in place of a minute.
package conformance
