// Package ferryman is a strict layer-7 reverse proxy: it speaks HTTP/1.1 and HTTP/2 to clients,
// routes by path prefix, guards every upstream with a circuit breaker, checks their health in the
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
// A request goes through three packages, once through each: frontend reads it from the client's connection
// (Server.Serve), exchange finds its route, asks the breaker and forwards it (Exchange.Run), upstream has the connection
// (Upstream.Idle, Waiter.Connection). The response comes back through exchange (relay) to the frontend
// (Frontend.Begin). This package makes the parts from a configuration, and changes and ends them: proxy.go, snapshot.go,
// drain.go. Below lie h1 and h2 (codecs), route, breaker, health, pool, dial, tunnel and netloop (event loops).
package ferryman
