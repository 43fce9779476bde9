// Package wire writes the bytes of an HTTP/1.1 request once and scans the bytes of its answers as
// they come in, whatever pieces they come in. It opens no connection and allocates nothing per
// answer.
//
//	request, err := wire.Request{URL: "http://127.0.0.1:8080/svc-a"}.Bytes()
//	s := wire.Scanner{}
//	s.Reset(wire.Expectation{})
//	n, done, err := s.Feed(received) // n bytes were the answer's
//
// The scanner is strict: what a client could read in two ways is an error. It looks only at what a
// load test needs: the status, the framing, whether the connection stays, and whether the body is
// the expected one.
package wire
