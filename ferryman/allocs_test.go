//go:build !race

package ferryman

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Not under the race detector, which makes sync.Pool forget at random.
//
// A whole exchange in steady state allocates nothing: the clients and upstreams of this test do
// not either, so the process-wide count is the proxy's.
func TestExchange_AllocatesNothing(t *testing.T) { requireAllocs(t, exchangeOnce, 0.5) }

// A read of crypto/tls that goes to the socket allocates, also where there is nothing. On loops that
// is twice a request, the second time to find out that no other request is there; the client adds one.
func TestExchange_AllocatesOverTLSWhatCryptoTLSDoes(t *testing.T) {
	requireAllocs(t, exchangeOnceTLS, 3.5)
}

// requireAllocs insists on fewer allocations an exchange than a limit, on each engine.
func requireAllocs(t *testing.T, start func(testing.TB, string) func(), limit float64) {
	t.Helper()
	forEachEngine(t, func(t *testing.T, engine string) {
		once := start(t, engine)
		for range 100 {
			once()
		}
		require.Less(t, testing.AllocsPerRun(500, once), limit)
	})
}
