// Package exchange carries one request from the frontend that read it to an upstream, and the response back: it finds
// the route, asks the circuit breaker, forwards, uploads, relays, and decides what the client sees and what the breaker
// counts where there is no response.
//
// It knows neither the protocol of the client nor how connections to upstreams are made: a Frontend is the client's
// side in the client's own protocol, an upstream.Conn is what leads to the upstream. It reads no configuration and
// writes no log: a Snapshot has the settings, an Observer gets what is worth a line.
//
//	var e exchange.Exchange // is used again for the next request
//	e.Reset(shared, executor, shared.Snapshot.Load(), frontend, body)
//	e.Request = exchange.Request{Path: path, Bodiless: true}
//	e.Run()
//	if !e.Complete() { ... } // the client's connection is not in step
//
// Read on in exchange.go, whose Run is a request's whole way: admit, forward (upload.go sends), relay (relay.go).
// outcome.go is the table of what happens where that way ends early.
package exchange
