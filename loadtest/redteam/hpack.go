package redteam

import (
	"bytes"
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2"
)

// What an encoder would not write: header blocks by hand (RFC 7541), and frames one after another.

// integer appends an HPACK integer with a prefix of some bits under the pattern.
func integer(dst []byte, pattern byte, bits, n int) []byte {
	most := 1<<bits - 1
	if n < most {
		return append(dst, pattern|byte(n))
	}
	dst = append(dst, pattern|byte(most))
	for n -= most; n >= 0x80; n >>= 7 {
		dst = append(dst, byte(n)|0x80)
	}
	return append(dst, byte(n))
}

func text(dst []byte, s string) []byte { return append(integer(dst, 0, 7, len(s)), s...) }

// indexed appends a reference to a table entry.
func indexed(dst []byte, i int) []byte { return integer(dst, 0x80, 7, i) }

// entered appends a field that enters the dynamic table; literal one that does not.
func entered(dst []byte, name, value string) []byte {
	return text(text(append(dst, 0x40), name), value)
}
func literal(dst []byte, name, value string) []byte {
	return text(text(append(dst, 0x00), name), value)
}

// Entries of the static table.
const (
	methodGET  = 2
	methodPOST = 3
	schemeHTTP = 6
	firstEntry = 62 // the newest of the dynamic table
)

// request is the block of a request with more fields, name and value in turn. Nothing enters the table.
func request(method, path string, more ...string) []byte {
	b := indexed(nil, map[string]int{"GET": methodGET, "POST": methodPOST}[method])
	b = indexed(b, schemeHTTP)
	b = literal(literal(b, ":path", path), ":authority", "localhost")
	for ; len(more) > 0; more = more[2:] {
		b = literal(b, more[0], more[1])
	}
	return b
}

// frame appends a frame.
func frame(dst []byte, t http2.FrameType, flags http2.Flags, id uint32, payload []byte) []byte {
	n := len(payload)
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), byte(t), byte(flags))
	return append(binary.BigEndian.AppendUint32(dst, id), payload...)
}

const (
	endStream  = http2.FlagHeadersEndStream
	endHeaders = http2.FlagHeadersEndHeaders
)

// headers appends a header block as HEADERS and, where it is long, CONTINUATION.
func headers(dst []byte, id uint32, flags http2.Flags, block []byte) []byte {
	const most = 16 << 10
	t := http2.FrameHeaders
	for len(block) > most {
		dst = frame(dst, t, flags, id, block[:most])
		block, t, flags = block[most:], http2.FrameContinuation, 0
	}
	return frame(dst, t, flags|endHeaders, id, block)
}

// word is a payload of 32 bits.
func word(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func setting(id http2.SettingID, n uint32) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(id)), word(n)...)
}

func resetFrame(dst []byte, id uint32) []byte {
	return frame(dst, http2.FrameRSTStream, 0, id, word(uint32(http2.ErrCodeCancel)))
}

// references are requests that weigh next to nothing on the wire and 60 KB each once decoded. The first block makes
// the table's entries, of which one is as large as the table allows; the other refers to it.
func references(method int, path string) (first, next []byte) {
	open := func(b []byte) []byte { return indexed(indexed(b, method), schemeHTTP) }
	first = entered(open(nil), ":path", path)
	first = entered(first, ":authority", "localhost")
	first = entered(first, "x-a", strings.Repeat("~", 3800))
	next = indexed(indexed(open(nil), firstEntry+1), firstEntry+2)
	return first, append(next, onlyReferences...)
}

// onlyReferences are as many as stay under the limit of 64 KiB.
var onlyReferences = bytes.Repeat(indexed(nil, firstEntry), 16)
