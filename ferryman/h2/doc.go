// Package h2 is what an end of an HTTP/2 connection is made of (RFC 9113): frames, parsed by golang.org/x/net/http2, whose
// parsers this package pools; header blocks, decoded within limits that no compression gets around (RFC 7541);
// a request's head in the form of HTTP/1.1, for its codec to read; a queue for what has come of a body; the
// streams that were reset lately.
//
// It knows no connection, no window and no stream's state: those are its user's.
//
//	dec := h2.NewDecoder()
//	var fields h2.Fields
//	block, err := dec.Gather(fragment, ended) // nil: more frames are to come
//	err = dec.Decode(block, &fields)          // an error ends the connection: the tables are out of step
//	if fields.TooLarge { ... }                // the tables are in step all the same
//	head, lines, ok := h2.AppendRequest(nil, fields.List)
//
// Read decode.go for the limits, request.go for what becomes of the pseudo-fields, encode.go for the form that heads have.
package h2
