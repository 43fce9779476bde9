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
//	285                 logqueue; cmd/ferryman/unread_linux_test.go, beside the tests here
//	286                 cmd/ferryman/hung_files_linux_test.go: a FUSE server of its own; needs root
//	292                 breaker/breaker_test.go, breaker/model_test.go, breaker/invariant_test.go, beside the test here
//	293                 metrics/scrape_test.go
//	313                 certificate/certificate_test.go, internal/filewatch/watch_test.go
//	317                 internal/filewatch/watch_test.go, cmd/ferryman/shortage_linux_test.go
//	318 to 320          config/testdata: prefixes_empty_segment, routes_inline*, defaults
//	322                 upstream/stray_test.go, with a clock, beside the test here
//	324                 certificate/expiry_test.go, cmd/ferryman/expiry_test.go
//	325                 logqueue/repeats_test.go, beside the test here
//	326                 cmd/ferryman/takeover_test.go
//
// Cases 285 to 326 are faults that were met in the field: logs and files that block (285, 286), memory and work in
// proportion to bytes (287, 290, 293 to 295), clients that are gone (288, 298), late frames and resets (289, 296, 300),
// shortages and dials (291, 297), what clients meet (299 to 312) and what operators do (313 to 326). What programs make
// of 296, 297, 299, 300, 303 and 312 is in loadtest/clients of the root module, floods of all kinds in loadtest/redteam.
//
// Case 283 is no test of its own: the workflows run all of them under the race detector, and vet and the
// vulnerability check over all modules. Case 281 is also what "go test -count=3 ./conformance" shows:
// TestMain counts goroutines and descriptors of the process before and after. Case 263 is measured with
// some hundred connections and without the race detector, case 271 for seconds in place of a minute.
package conformance
