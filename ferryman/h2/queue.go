package h2

import (
	"slices"
	"sync"
)

// queuePiece is the size of the pieces of a Queue.
const queuePiece = 4 << 10

var queuePieces = sync.Pool{New: func() any { return new([queuePiece]byte) }}

// Queue is what has come of a stream's body and was not read. It is made of pieces of a pool: a buffer that
// grows would leave as much to the garbage collector as it holds. The zero value is empty.
type Queue struct {
	pieces []*[queuePiece]byte
	r, w   int // where to read in the first piece, and to write in the last
}

// Len is the number of bytes.
func (q *Queue) Len() int { return len(q.pieces)*queuePiece - q.r - q.free() }

// free is the room in the last piece.
func (q *Queue) free() int {
	if len(q.pieces) == 0 {
		return 0
	}
	return queuePiece - q.w
}

// Append adds b, and returns how many bytes of memory more it takes for it.
func (q *Queue) Append(b []byte) (taken int) {
	for len(b) > 0 {
		if q.free() == 0 {
			q.pieces = append(q.pieces, queuePieces.Get().(*[queuePiece]byte))
			q.w = 0
			taken += queuePiece
		}
		n := copy(q.pieces[len(q.pieces)-1][q.w:], b)
		q.w += n
		b = b[n:]
	}
	return taken
}

// Read moves bytes to p, and returns how many, and how much memory that has given back.
func (q *Queue) Read(p []byte) (n, given int) {
	through := 0
	for n < len(p) && through < len(q.pieces) {
		end := queuePiece
		if through == len(q.pieces)-1 {
			end = q.w
		}
		k := copy(p[n:], q.pieces[through][q.r:end])
		n += k
		if q.r += k; q.r < end {
			break
		}
		q.r = 0
		queuePieces.Put(q.pieces[through])
		through++
	}
	q.pieces = slices.Delete(q.pieces, 0, through)
	return n, through * queuePiece
}

// Drop forgets what is there, and returns how much memory that has given back.
func (q *Queue) Drop() (given int) {
	given = len(q.pieces) * queuePiece
	for _, p := range q.pieces {
		queuePieces.Put(p)
	}
	clear(q.pieces)
	*q = Queue{pieces: q.pieces[:0]}
	return given
}
