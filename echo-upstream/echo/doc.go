// Package echo is the upstream of the lab: it answers HTTP/1.1 on a data port, describes what
// reached it, and misbehaves on request through an admin port.
//
// It is no proxy and no framework, and it is not meant to face the internet: whoever reaches the
// admin port decides how it fails.
//
//	s := echo.New(echo.Options{Instance: "a"})
//	go s.ServeData(dataListener)
//	go s.ServeAdmin(adminListener)
//	...
//	s.Shutdown(ctx)
//
// On Linux, requests for /echo that come whole are answered by event loops; a connection with any other
// one is served by a goroutine from then on (front_linux.go).
//
// The endpoints are recognised at the end of the path, so that they work behind a proxy that keeps
// its prefix (/svc-a/status/503). Only /health must be the whole path.
//
//	/echo            a short fixed body, no work
//	/health          200; what the fault says about it, see Fault.Health
//	/bytes/N         N bytes with a Content-Length
//	/chunked/N       N bytes in chunks
//	/stream          ?chunks=10&every=100ms: one line at a time
//	/status/NNN      an answer with that status, 200 to 599
//	/trailers        a chunked answer with the trailer X-Echo-Checksum
//	anything else    JSON: what arrived, see Description
package echo
