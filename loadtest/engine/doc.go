// Package engine sends the requests of a load test when they are due and counts what comes back.
// It keeps to the schedule whatever the target does: a slow answer delays no other request's due
// time, only its sending, and the wait is part of what is measured.
//
//	report, err := engine.Run(ctx, engine.Plan{
//		Targets:     []engine.Target{{Request: wire.Request{URL: "http://127.0.0.1:8080/svc-a"}}},
//		Rate:        1000,
//		Connections: 50,
//		Duration:    10 * time.Second,
//	})
//	report.Judge(result.Budgets{P99: 5 * time.Millisecond}, result.Limits{})
//
// On Linux, plaintext HTTP/1.1 is sent by one epoll loop per thread over raw sockets: no goroutine
// per connection and no allocation per request. Elsewhere, and for TLS and HTTP/2, each connection
// has a goroutine; that costs more and is meant for comparing targets, not for measuring
// microseconds.
//
// A loop sleeps in the kernel. A process that does other things beside should have as many as
// Runner.Loops processors more than it needs for them (runtime.GOMAXPROCS), or the runtime keeps
// taking one away from the loop and giving it back.
//
// It does not follow redirects, keep cookies, resolve names again or retry.
package engine
