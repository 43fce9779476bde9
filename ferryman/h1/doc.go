// Package h1 is a strict HTTP/1.1 codec (RFC 9112) for both directions: it parses heads in place,
// decides how a body is framed, decodes and encodes bodies. What is doubtful is refused, never
// repaired, for leniency is what request smuggling lives on.
//
// It does no routing and adds or removes no field of its own accord. Only Writer knows the time, from its Clock.
//
//	in := h1.NewReader(conn)
//	var req h1.Request
//	for done := false; !done; {
//		if err := in.Fill(); err != nil { ... }
//		if done, err = in.Request(&req); err != nil { ... } // an *h1.Error names the status
//	}
//	framing, length := req.Framing()
//	var body h1.Body
//	body.Reset(in, framing, length)
//	io.Copy(dst, &body)
//
// Parsing is incremental: every byte is looked at once, however the bytes are cut, and a field is
// a pair of offsets into the reader's buffer, so that parsing allocates nothing.
package h1

// Limits of a head. RFC 9110 section 5.4 and RFC 9112 section 3 leave them to the recipient.
const (
	MaxHead    = 64 << 10 // bytes of a head, from its first to the empty line's last
	MaxFields  = 256      // field lines of a head
	MaxTarget  = 16 << 10 // bytes of a request target
	maxMethod  = 64       // bytes of a method
	maxOptions = 32       // members of all Connection fields together: each is looked for in all fields
)
