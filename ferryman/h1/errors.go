package h1

// Error is a violation of the grammar or of a limit. Status is the answer to a request that has
// it; in a response every Error means that the upstream is at fault.
type Error struct {
	Status int
	Cause  string
}

// Error returns the cause, a constant without any byte of the message.
func (e *Error) Error() string { return e.Cause }

func bad(cause string) *Error { return &Error{Status: 400, Cause: cause} }

var (
	errBareLF        = bad("bare LF")
	errEmptyLine     = bad("empty line before the request line")
	errMethod        = bad("malformed method")
	errTarget        = bad("malformed request target")
	errVersion       = bad("malformed protocol version")
	errFieldName     = bad("malformed field name")
	errFieldValue    = bad("malformed field value")
	errLength        = bad("malformed Content-Length")
	errRepeatedLen   = bad("repeated Content-Length")
	errCoding        = bad("unsupported Transfer-Encoding")
	errLengthCoding  = bad("Content-Length beside Transfer-Encoding")
	errOldCoding     = bad("Transfer-Encoding in HTTP/1.0")
	errOptions       = bad("malformed Connection")
	errHost          = bad("malformed Host")
	errNoHost        = bad("missing Host")
	errRepeatedHost  = bad("repeated Host")
	errMaxForwards   = bad("malformed Max-Forwards")
	errChunkSize     = bad("malformed chunk size")
	errChunkExt      = bad("malformed chunk extension")
	errChunkEnd      = bad("malformed end of chunk")
	errStatusLine    = bad("malformed status line")
	errTargetTooLong = &Error{Status: 414, Cause: "request target too long"}
	errExpectation   = &Error{Status: 417, Cause: "unknown expectation"}
	errHeadTooLarge  = &Error{Status: 431, Cause: "head too large"}
	errFieldCount    = &Error{Status: 431, Cause: "too many fields"}
	errVersionMajor  = &Error{Status: 505, Cause: "unsupported protocol version"}
)
