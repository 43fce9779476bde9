package h2

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/net/http2"
)

// Header blocks are written without a dynamic table: a table would save bytes and cost an order among
// streams, a lookup for each field and memory for each connection.

const (
	// NoDynamicTable is a dynamic table size update to 0 (RFC 7541 section 6.3).
	NoDynamicTable = 0x20
	plainField     = 0x00 // literal without indexing, new name (section 6.2.2)
	plainStatus    = 0x08 // the same with the name of index 8, ":status"
)

// AppendFrameHead appends the head of a frame with n bytes of payload.
func AppendFrameHead(dst []byte, n int, t http2.FrameType, flags http2.Flags, id uint32) []byte {
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), byte(t), byte(flags))
	return binary.BigEndian.AppendUint32(dst, id)
}

// staticStatus are the codes that have an index of their own (RFC 7541 appendix A).
var staticStatus = map[int]byte{200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}

// AppendStatus appends the pseudo-field of a response.
func AppendStatus(dst []byte, status int) []byte {
	if i, ok := staticStatus[status]; ok {
		return append(dst, 0x80|i)
	}
	return strconv.AppendInt(append(dst, plainStatus, 3), int64(status), 10)
}

// AppendField appends a field, its name in lower case.
func AppendField[T string | []byte](dst []byte, name, value T) []byte {
	dst = appendSize(append(dst, plainField), len(name))
	for i := range len(name) {
		c := name[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return append(appendSize(dst, len(value)), value...)
}

// appendSize appends an integer with a prefix of seven bits (RFC 7541 section 5.1).
func appendSize(dst []byte, n int) []byte {
	const prefix = 1<<7 - 1
	if n < prefix {
		return append(dst, byte(n))
	}
	dst = append(dst, prefix)
	for n -= prefix; n >= 1<<7; n >>= 7 {
		dst = append(dst, 1<<7|byte(n))
	}
	return append(dst, byte(n))
}
