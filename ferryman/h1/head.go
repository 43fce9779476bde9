package h1

import "bytes"

// Field is one field line as offsets into its head; blanks around the value are outside.
type Field struct {
	Start, NameEnd  uint32 // the line begins with the name
	Value, ValueEnd uint32
	Kind            Kind
}

type span struct{ from, to uint32 }

// Head is what request, response and trailer section have in common. Its offsets count from the
// head's first byte.
type Head struct {
	Fields []Field
	raw    []byte // the bytes that the offsets refer to; valid until the reader's next Fill
	pos    int    // where the next line starts
	scan   int    // up to here no line end was found
	begun  bool   // the start line was read; a trailer section has none and frames nothing

	length  int64 // Content-Length, -1: none
	codings int   // Transfer-Encoding lines
	minor   byte  // HTTP/1.minor, 0 or 1

	options                       []span // Connection members other than those below
	optClose, optKeep, optUpgrade bool
}

func (h *Head) reset() {
	*h = Head{Fields: h.Fields[:0], options: h.options[:0], length: -1, minor: 1}
}

// Bytes returns a part of the head.
func (h *Head) Bytes(from, to uint32) []byte { return h.raw[from:to] }

// Name and ValueOf return the two halves of a field line.
func (h *Head) Name(f *Field) []byte { return h.raw[f.Start:f.NameEnd] }

// ValueOf returns the value of f without the blanks around it.
func (h *Head) ValueOf(f *Field) []byte { return h.raw[f.Value:f.ValueEnd] }

// Old reports HTTP/1.0.
func (h *Head) Old() bool { return h.minor == 0 }

// Close reports whether the sender will not keep the connection (RFC 9112 section 9.3).
func (h *Head) Close() bool { return h.optClose || h.Old() && !h.optKeep }

// line returns the next whole line without its CRLF, or nil where it has not ended yet.
func (h *Head) line(b []byte) ([]byte, error) {
	i := bytes.IndexByte(b[h.scan:], '\n')
	if i < 0 {
		h.scan = len(b)
		if len(b) > MaxHead {
			return nil, errHeadTooLarge
		}
		return nil, nil
	}
	end := h.scan + i
	if end == h.pos || b[end-1] != '\r' {
		return nil, errBareLF
	}
	if end >= MaxHead {
		return nil, errHeadTooLarge
	}
	line := b[h.pos : end-1]
	h.pos, h.scan = end+1, end+1
	return line, nil
}

// fields parses field lines up to the empty one. done is false where more bytes are needed.
func (h *Head) fields(b []byte) (done bool, err error) {
	for {
		start := h.pos
		line, err := h.line(b)
		if line == nil || err != nil {
			return false, err
		}
		if len(line) == 0 {
			h.raw = b[:h.pos]
			h.dropNamed()
			return true, nil
		}
		if len(h.Fields) == MaxFields {
			return false, errFieldCount
		}
		if err := h.field(b, line, uint32(start)); err != nil {
			return false, err
		}
	}
}

func (h *Head) field(b, line []byte, start uint32) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return errFieldLine
	}
	seen, every := byte(0), byte(0xff)
	for _, c := range line[:colon] {
		seen |= class[c]
		every &= class[c]
	}
	if every&isToken == 0 {
		return errFieldName
	}
	from, to := colon+1, len(line)
	for from < to && (line[from] == ' ' || line[from] == '\t') {
		from++
	}
	for to > from && (line[to-1] == ' ' || line[to-1] == '\t') {
		to--
	}
	if !all(line[from:to], isValue) {
		return errFieldValue
	}
	f := Field{Start: start, NameEnd: start + uint32(colon), Value: start + uint32(from), ValueEnd: start + uint32(to)}
	f.Kind = KindOf(line[:colon])
	if f.Kind == Other && seen&isAlias != 0 {
		f.Kind = kindOfAlias(line[:colon])
	}
	h.Fields = append(h.Fields, f)
	if !h.begun {
		return nil
	}
	return h.note(&f, line[from:to])
}

// note takes down what framing and persistence hang on.
func (h *Head) note(f *Field, value []byte) error {
	switch f.Kind {
	case ContentLength:
		if h.length >= 0 {
			return errRepeatedLen
		}
		n, ok := decimal(value)
		if !ok {
			return errLength
		}
		h.length = n
	case TransferEncoding:
		h.codings++
		if h.codings > 1 || !foldEqual(value, "chunked") {
			return errCoding
		}
	case Connection:
		return h.connection(value, f.Value)
	}
	return nil
}

// connection reads the members of one Connection field (RFC 9110 sections 5.6.1 and 7.6.1).
func (h *Head) connection(value []byte, offset uint32) error {
	for len(value) > 0 {
		member := value
		if i := bytes.IndexByte(value, ','); i >= 0 {
			member = value[:i]
		}
		at := offset
		step := min(len(member)+1, len(value))
		value, offset = value[step:], offset+uint32(step)

		lead := len(member)
		member = bytes.TrimLeft(member, " \t")
		at += uint32(lead - len(member))
		member = trimBlanks(member)
		switch {
		case len(member) == 0:
		case !isTokenBytes(member):
			return errOptions
		case foldEqual(member, "close"):
			h.optClose = true
		case foldEqual(member, "keep-alive"):
			h.optKeep = true
		case foldEqual(member, "upgrade"):
			h.optUpgrade = true
		case len(h.options) == maxOptions:
			return errOptions
		default:
			h.options = append(h.options, span{at, at + uint32(len(member))})
		}
	}
	return nil
}

// dropNamed marks the fields that Connection names. What a message is framed and routed by cannot
// be talked away.
func (h *Head) dropNamed() {
	for _, o := range h.options {
		option := h.raw[o.from:o.to]
		for i := range h.Fields {
			f := &h.Fields[i]
			switch f.Kind {
			case Host, ContentLength, TransferEncoding, Connection:
			default:
				if foldEqualBytes(h.Name(f), option) {
					f.Kind = Dropped
				}
			}
		}
	}
}

// framed checks what no message may have: a length beside a coding, a coding in HTTP/1.0.
func (h *Head) framed() error {
	switch {
	case h.codings > 0 && h.length >= 0:
		return errLengthCoding
	case h.codings > 0 && h.Old():
		return errOldCoding
	}
	return nil
}
