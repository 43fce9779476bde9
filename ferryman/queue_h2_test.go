package ferryman

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A queue is a buffer of bytes, whatever pieces it is filled and read in.
func TestBodyQueue_IsABuffer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var q bodyQueue
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
				held += q.append(b)
			case 4:
				if rnd.IntN(20) == 0 {
					held -= q.drop()
					model.Reset()
				}
			default:
				got, want := make([]byte, rnd.IntN(3*queuePiece)), make([]byte, 3*queuePiece)
				n, given := q.read(got)
				held -= given
				m, _ := model.Read(want[:len(got)])
				require.Equal(t, want[:m], got[:n])
			}
			require.Equal(t, model.Len(), q.len())
			require.Equal(t, held, len(q.pieces)*queuePiece)
			require.LessOrEqual(t, held, q.len()+2*queuePiece, "it holds what is in it")
			if q.len() == 0 {
				require.Zero(t, held)
			}
		}
	}
}
