package h1

// BufferSize is the size of the buffer that r holds, 0 for none.
func (r *Reader) BufferSize() int { return len(r.buf) }

const (
	SmallBuffer  = smallBuffer
	LargeBuffer  = largeBuffer
	MiddleBuffer = middleBuffer
	MaxMethod    = maxMethod
	MaxOptions   = maxOptions
	MaxChunkExt  = maxChunkExt
)

// TrailerRoom is what b keeps for trailer sections.
func (b *Body) TrailerRoom() int { return cap(b.chunks.trailer) }
