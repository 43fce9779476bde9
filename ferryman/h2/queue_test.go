package h2

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A queue is a buffer of bytes, whatever pieces it is filled and read in.
func TestQueue_IsABuffer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var q Queue
		var model bytes.Buffer
		held := 0
		for range 100 {
			switch rnd.IntN(8) {
			case 0, 1, 2, 3:
				b := make([]byte, []int{0, 1, 100, queuePiece - 1, queuePiece, queuePiece + 1, 4 * queuePiece}[rnd.IntN(7)])
				for i := range b {
					b[i] = byte(rnd.Uint32())
				}
				model.Write(b)
				held += q.Append(b)
			case 4:
				if rnd.IntN(20) == 0 {
					held -= q.Drop()
					model.Reset()
				}
			default:
				got, want := make([]byte, rnd.IntN(3*queuePiece)), make([]byte, 3*queuePiece)
				n, given := q.Read(got)
				held -= given
				m, _ := model.Read(want[:len(got)])
				require.Equal(t, want[:m], got[:n])
			}
			require.Equal(t, model.Len(), q.Len())
			require.Equal(t, held, len(q.pieces)*queuePiece)
			require.LessOrEqual(t, held, q.Len()+2*queuePiece, "it holds what is in it")
			if q.Len() == 0 {
				require.Zero(t, held)
			}
		}
	}
}
