// Package frontend is the client's side of the proxy: it accepts connections, speaks HTTP/1.1 and HTTP/2 on them, with
// TLS or without, and turns what comes into requests of package exchange and their outcomes into bytes.
//
// It chooses no upstream; a request that it could read is accepted or refused by exchange. It knows no configuration
// file and no metrics.
//
//	s := frontend.New(frontend.Options{Shared: shared, Engine: engine, Goroutines: goroutines, Log: logger})
//	go s.Serve(listener)
//	go s.ServeTLS(tlsListener, certificate)
//	...
//	s.StopAccepting()
//	<-s.Drain()
//
// server.go accepts; conn_h1.go is one HTTP/1.1 connection, conn_h2.go one of HTTP/2, stream_h2.go one of its streams.
// request.go decides which fields go further, for both. registry.go knows every connection, for gauges and drain.
package frontend
