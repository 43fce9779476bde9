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
	scan   int    // from pos to here there is no line end
	begun  bool   // the start line was read; a trailer section has none and frames nothing

	length    int64
	hasLength bool // Content-Length is there
	codings   int  // Transfer-Encoding lines
	old       bool // HTTP/1.0

	options                       []span // Connection members other than those below
	optClose, optKeep, optUpgrade bool
}

func (h *Head) reset() {
	*h = Head{Fields: h.Fields[:0], options: h.options[:0]}
}

// Name returns the name of f as it came.
func (h *Head) Name(f *Field) []byte { return h.raw[f.Start:f.NameEnd] }

// ValueOf returns the value of f without the blanks around it.
func (h *Head) ValueOf(f *Field) []byte { return h.raw[f.Value:f.ValueEnd] }

// Old reports HTTP/1.0.
func (h *Head) Old() bool { return h.old }

// Close reports whether the sender will not keep the connection (RFC 9112 section 9.3).
func (h *Head) Close() bool { return h.optClose || h.Old() && !h.optKeep }

// line returns the next whole line without its CRLF, or nil where it has not ended yet or ends
// wrongly: b[h.pos:h.scan] is what there is of it then.
func (h *Head) line(b []byte) ([]byte, error) {
	i := bytes.IndexByte(b[h.scan:], '\n')
	end := h.scan + i
	if i < 0 {
		end = len(b)
	}
	h.scan = end
	switch {
	case end > MaxHead || i >= 0 && end == MaxHead:
		return nil, errHeadTooLarge
	case i < 0:
		return nil, nil
	case end == h.pos || b[end-1] != '\r':
		return nil, errBareLF
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
		if err := h.field(line, uint32(start)); err != nil {
			return false, err
		}
	}
}

func (h *Head) field(line []byte, start uint32) error {
	colon, classes := name(line)
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return errFieldName
	}
	from, to := unblank(line, colon+1, len(line))
	if !isText(line[from:to]) {
		return errFieldValue
	}
	f := Field{Start: start, NameEnd: start + uint32(colon), Value: start + uint32(from), ValueEnd: start + uint32(to)}
	f.Kind = KindOf(line[:colon])
	if f.Kind == Other && classes&isAlias != 0 {
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
		if h.hasLength {
			return errRepeatedLen
		}
		n, ok := decimal(value)
		if !ok {
			return errLength
		}
		h.length, h.hasLength = n, true
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
	for at := 0; at < len(value); {
		end := len(value)
		if i := bytes.IndexByte(value[at:], ','); i >= 0 {
			end = at + i
		}
		from, to := unblank(value, at, end)
		at = end + 1
		switch member := value[from:to]; {
		case len(member) == 0:
		case leading(member, isToken) < len(member):
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
			h.options = append(h.options, span{offset + uint32(from), offset + uint32(to)})
		}
	}
	return nil
}

// dropNamed marks the fields that Connection names.
func (h *Head) dropNamed() {
	for _, o := range h.options {
		h.drop(h.raw[o.from:o.to])
	}
}

// drop marks the fields of a name. What a message is framed and routed by cannot be talked away.
func (h *Head) drop(name []byte) {
	for i := range h.Fields {
		f := &h.Fields[i]
		switch f.Kind {
		case Host, ContentLength, TransferEncoding, Connection:
		default:
			if foldEqualBytes(h.Name(f), name) {
				f.Kind = Dropped
			}
		}
	}
}

// framed checks what no message may have: a length beside a coding, a coding in HTTP/1.0.
func (h *Head) framed() error {
	switch {
	case h.codings > 0 && h.hasLength:
		return errLengthCoding
	case h.codings > 0 && h.Old():
		return errOldCoding
	}
	return nil
}
