package h2

import (
	"io"
	"sync"

	"golang.org/x/net/http2"
)

// MaxFrame is the largest payload of a frame, both ways: what every peer must take (RFC 9113 section 4.2).
const MaxFrame = 16 << 10

// Framer parses the frames of a connection. Its buffer is as large as the largest frame was, so a connection should
// have one only while there is something of a frame: see BorrowFramer.
type Framer struct {
	*http2.Framer
	from io.Reader
}

// Read is where the frames' bytes come from.
func (f *Framer) Read(p []byte) (int, error) { return f.from.Read(p) }

var framers = sync.Pool{New: func() any {
	f := &Framer{}
	f.Framer = http2.NewFramer(nil, f)
	f.SetReuseFrames()
	f.SetMaxReadFrameSize(MaxFrame)
	return f
}}

// BorrowFramer returns a Framer of what from yields.
func BorrowFramer(from io.Reader) *Framer {
	f := framers.Get().(*Framer)
	f.from = from
	return f
}

// ReturnFramer takes back a Framer that is between two frames.
func ReturnFramer(f *Framer) {
	f.from = nil
	framers.Put(f)
}
