package h1

// chunked decodes the chunked coding (RFC 9112 section 7.1) in place, so that a read needs no
// second buffer. It is a state machine over bytes: the result does not depend on how they are cut.
//
//	size ─► ext ─► sizeLF ─► data ─► dataCR ─► dataLF ─► size …
//	               └ size 0 ─► trailer ─► done
type chunked struct {
	state   chunkState
	digits  int    // of the current size
	size    int64  // of the current chunk: while in data, what is left of it
	ext     int    // bytes of the current extension
	padded  bool   // blanks may stand behind a size, as many small servers write them
	trailer []byte // the trailer section so far; parsed once it is whole
	fields  Head
	err     error
}

// reset keeps memory. It sets field by field: a literal would stand on every caller's stack.
func (c *chunked) reset() {
	c.state, c.digits, c.size, c.ext, c.err = chunkSize, 0, 0, 0, nil
	c.trailer = c.trailer[:0]
	if cap(c.trailer) > smallBuffer { // rare, and not worth keeping
		c.trailer = nil
	}
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkBlank
	chunkExt
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	chunkTrailer
	chunkDone
)

const (
	maxChunkDigits = 16   // RFC 9112 section 7.1: anticipate large numbers
	maxChunkExt    = 1024 // bytes of extensions of one chunk
)

// decode moves the payload in b to its front. It returns the payload's length and how much of b
// was used, which is all of it unless the body ended inside.
func (c *chunked) decode(b []byte) (payload, used int, err error) {
	for used < len(b) && c.state != chunkDone && c.err == nil {
		switch c.state {
		case chunkData:
			n := int(min(c.size, int64(len(b)-used)))
			payload += copy(b[payload:], b[used:used+n])
			used += n
			if c.size -= int64(n); c.size == 0 {
				c.state = chunkDataCR
			}
		case chunkTrailer:
			used += c.readTrailer(b[used:])
		default:
			c.err = c.step(b[used])
			used++
		}
	}
	return payload, used, c.err
}

// step takes one byte of framing.
func (c *chunked) step(b byte) error {
	switch c.state {
	case chunkSize:
		return c.sizeByte(b)
	case chunkBlank:
		switch {
		case b == ';':
			c.state = chunkExt
		case b == '\r' && c.padded:
			c.state = chunkSizeLF
		case b != ' ' && b != '\t':
			return errChunkSize
		}
		return c.countExt()
	case chunkExt:
		if b == '\r' {
			c.state = chunkSizeLF
			return nil
		}
		if class[b]&isValue == 0 {
			return errChunkExt
		}
		return c.countExt()
	case chunkSizeLF:
		if b != '\n' {
			return errChunkSize
		}
		c.startChunk()
	case chunkDataCR:
		if b != '\r' {
			return errChunkEnd
		}
		c.state = chunkDataLF
	case chunkDataLF:
		if b != '\n' {
			return errChunkEnd
		}
		c.state, c.size, c.digits, c.ext = chunkSize, 0, 0, 0
	}
	return nil
}

func (c *chunked) sizeByte(b byte) error {
	digit, ok := hexDigit(b)
	switch {
	case ok:
		if c.digits++; c.digits > maxChunkDigits || c.size > (1<<63-1)>>4 {
			return errChunkSize
		}
		c.size = c.size<<4 | int64(digit)
	case c.digits == 0:
		return errChunkSize
	case b == '\r':
		c.state = chunkSizeLF
	case b == ';':
		c.state = chunkExt
	case b == ' ' || b == '\t':
		c.state = chunkBlank
	default:
		return errChunkSize
	}
	return nil
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b-'0' <= 9:
		return b - '0', true
	case b|0x20 >= 'a' && b|0x20 <= 'f':
		return b | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func (c *chunked) countExt() error {
	if c.ext++; c.ext > maxChunkExt {
		return errChunkExt
	}
	return nil
}

func (c *chunked) startChunk() {
	c.state = chunkData
	if c.size == 0 {
		c.state = chunkTrailer
		c.fields.reset()
	}
}

// readTrailer gathers the trailer section, which is a list of fields like a head's.
func (c *chunked) readTrailer(b []byte) (used int) {
	before := len(c.trailer)
	c.trailer = append(c.trailer, b[:min(len(b), MaxHead+1-before)]...)
	done, err := c.fields.fields(c.trailer)
	if err != nil {
		c.err = err
		return 0
	}
	if !done {
		return len(c.trailer) - before
	}
	c.state = chunkDone
	return c.fields.pos - before
}
