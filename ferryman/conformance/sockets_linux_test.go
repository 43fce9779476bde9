package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	established = "01"
	synSent     = "02"
)

// sockets is how many of this host's sockets are in a state towards an address.
func sockets(t testing.TB, addr, state string) (n int) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	to := fmt.Sprintf(":%04X", port(addr))
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[2], to) && f[3] == state {
			n++
		}
	}
	return n
}
