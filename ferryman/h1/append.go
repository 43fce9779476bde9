package h1

import "strconv"

// AppendField appends one field line.
func AppendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendLength appends a Content-Length line.
func AppendLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// AppendStatus appends a status line of HTTP/1.1.
func AppendStatus(dst []byte, status int, reason []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, reason...)
	return append(dst, "\r\n"...)
}

// AppendKept appends the field lines of h for whose kind drop is false, in order and byte for byte
// but for blanks around values that stand alone. Neighbours are copied as one range.
func (h *Head) AppendKept(dst []byte, drop *[NotInTrailer + 1]bool) []byte {
	fields := h.Fields
	for i := 0; i < len(fields); i++ {
		if drop[fields[i].Kind] {
			continue
		}
		from := fields[i].Start
		for i+1 < len(fields) && !drop[fields[i+1].Kind] {
			i++
		}
		to := uint32(h.pos - 2) // the empty line
		if i+1 < len(fields) {
			to = fields[i+1].Start
		}
		dst = append(dst, h.raw[from:to]...)
	}
	return dst
}

// ChunkRoom is what a chunk needs in front of its payload and behind it.
const (
	ChunkFront = 6 // four hex digits and CRLF: payloads of at most 65535 bytes
	ChunkBack  = 2
)

// Chunk frames the payload that lies at b[ChunkFront:ChunkFront+n] as one chunk, in place, and
// returns it whole. b needs ChunkBack bytes behind the payload; n is 1 to 65535.
func Chunk(b []byte, n int) []byte {
	const hex = "0123456789abcdef"
	b[ChunkFront-2], b[ChunkFront-1] = '\r', '\n'
	at := ChunkFront - 2
	for v := n; v > 0; v >>= 4 {
		at--
		b[at] = hex[v&15]
	}
	b[ChunkFront+n], b[ChunkFront+n+1] = '\r', '\n'
	return b[at : ChunkFront+n+ChunkBack]
}

// LastChunk is the end of a chunked body without trailers.
const LastChunk = "0\r\n\r\n"

// AppendTrailer appends the end of a chunked body with those trailers that may be merged.
func AppendTrailer(dst []byte, trailer *Head) []byte {
	dst = append(dst, "0\r\n"...)
	if trailer != nil {
		dst = trailer.AppendKept(dst, &notInTrailer)
	}
	return append(dst, "\r\n"...)
}

// notInTrailer keeps plain fields only (RFC 9110 section 6.5.1).
var notInTrailer = func() (drop [NotInTrailer + 1]bool) {
	for k := range drop {
		drop[k] = Kind(k) != Other
	}
	return drop
}()

// InTrailer reports whether a field of this kind may be forwarded in a trailer section.
func (k Kind) InTrailer() bool { return !notInTrailer[k] }
