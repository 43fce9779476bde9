package h1_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// source makes a Source of a string; a connection would wait in Await.
type source struct{ io.Reader }

func (source) Await() error { return nil }

func Example() {
	in := h1.NewReader(source{strings.NewReader(
		"POST /greet HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5\r\nhello\r\n0\r\n\r\n")})

	var req h1.Request
	req.Reset()
	for done := false; !done; {
		if err := in.Fill(); err != nil {
			panic(err)
		}
		var err error
		if done, err = in.Request(&req); err != nil {
			panic(err) // an *h1.Error: its Status is the answer
		}
	}
	fmt.Printf("%s %s for %s\n", req.Method(), req.Path(), req.Host())

	var body h1.Body
	body.Reset(in, h1.Chunked, 0) // what req.Framing says
	payload, err := io.ReadAll(&body)
	fmt.Printf("%s %v\n", payload, err)

	// Output:
	// POST /greet for example.org
	// hello <nil>
}
