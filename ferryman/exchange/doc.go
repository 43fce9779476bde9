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
// Read exchange.go: Run calls admit, allowed (probe.go), forward (upload.go sends) and relay. Early exits are fail and
// refuse (verdict.go), with an Outcome of the table in outcome.go. frontend.go is what a client's side implements.
package exchange
