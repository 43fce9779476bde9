// Package ferryman is a strict layer-7 reverse proxy: it speaks HTTP/1.1 and HTTP/2 to clients,
// routes by path prefix, guards every upstream with a circuit breaker, probes upstreams in the
// background and changes its configuration without dropping a connection.
//
// It does not rewrite bodies, cache, authenticate, balance over several upstreams of one route or
// speak TLS to upstreams. It reads no flags and no environment, never exits, and logs only to the
// logger that it is given.
//
//	c, err := config.Load("config.toml")
//	...
//	p, err := ferryman.New(c, ferryman.Options{Logger: slog.Default()})
//	...
//	go http.ListenAndServe("127.0.0.1:9090", p.MetricsHandler())
//	go p.Serve(listener)
//	...
//	err = p.Shutdown(ctx)
//
// A request's way through the files: client_h1.go or client_h2.go reads it, exchange.go takes it
// from route to breaker to upstream, upload.go brings its body up, relay.go brings the answer
// down, reply.go decides what the client sees where there is none.
package ferryman
