// Package h2 is the codec of HTTP/2's header blocks (RFC 7541, RFC 9113 section 4.3): it decodes what a
// client sends within limits that no compression gets around, and encodes what ferryman sends.
//
// It parses no frame (golang.org/x/net/http2 does), knows no stream and judges no field.
//
//	dec := h2.NewDecoder()
//	var fields h2.Fields
//	block, err := dec.Gather(fragment, ended) // nil: more frames are to come
//	err = dec.Decode(block, &fields)          // an error ends the connection: the tables are out of step
//	if fields.TooLarge { ... }                // the tables are in step all the same
//
// Read decode.go for the limits, encode.go for the form that heads have.
package h2
