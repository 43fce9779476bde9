//go:build !race

package ferryman

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is left is the parser's: the frame, its fields, the decoder's strings.
func TestExchange_AllocatesLittleOnHTTP2(t *testing.T) {
	for _, engine := range []string{"goroutines", "auto"} {
		once := exchangeOnceH2(t, engine)
		for range 100 {
			once()
		}
		require.Less(t, testing.AllocsPerRun(500, once), 15.0, engine)
	}
}
