package netloop

import "sync"

const (
	// unsentSize holds maxPiece in records, the first of which carry little more than a kilobyte.
	unsentSize = 40 << 10
	// maxWaiting is what may wait at most: one piece and then what reading makes crypto/tls write. A
	// peer that takes in nothing and asks for one new key after another must not fill the memory.
	maxWaiting = 64 << 10
)

var unsents = sync.Pool{New: func() any { b := make([]byte, 0, unsentSize); return &b }}

// unsent is what waits to be sent. It holds a buffer only while there is something.
type unsent struct{ buf *[]byte }

func (u *unsent) bytes() []byte {
	if u.buf == nil {
		return nil
	}
	return *u.buf
}

// add puts b behind what waits. false: that would be too much.
func (u *unsent) add(b []byte) bool {
	if len(u.bytes())+len(b) > maxWaiting {
		return false
	}
	if u.buf == nil {
		u.buf = unsents.Get().(*[]byte)
	}
	*u.buf = append(*u.buf, b...)
	return true
}

// took removes the first n bytes, which are sent.
func (u *unsent) took(n int) {
	if rest := u.bytes()[min(n, len(u.bytes())):]; len(rest) > 0 {
		*u.buf = append((*u.buf)[:0], rest...)
		return
	}
	u.drop()
}

// drop gives the buffer back with whatever is in it, unless it has grown.
func (u *unsent) drop() {
	if u.buf != nil && cap(*u.buf) == unsentSize {
		*u.buf = (*u.buf)[:0]
		unsents.Put(u.buf)
	}
	u.buf = nil
}
