// Package netloop runs connections: it accepts and dials them, and runs the straight-line functions
// ("coroutines") that serve them. On the Goroutines engine a coroutine is a goroutine.
//
// There are two engines. Goroutines uses the runtime's own poller and works everywhere.
// Loops (Linux) runs one epoll loop per processor and every coroutine on the goroutine of its loop,
// so that both sides of a proxied request live on one thread. Code written against Conn and
// Executor runs on either without knowing which.
//
// It knows nothing of HTTP, of routes or of metrics.
//
//	engine := netloop.Goroutines(netloop.Options{})
//	go engine.Serve(listener, func(ex netloop.Executor, c netloop.Conn) {
//		defer c.Close()
//		io.Copy(c, c)
//	})
//
// Read netloop.go for the two interfaces, then goroutines.go and goconn.go for one engine or loop_linux.go,
// coroutine_linux.go and loopconn_linux.go for the other; scale.go decides how many loops work, tls.go has TLS above a Conn.
package netloop
