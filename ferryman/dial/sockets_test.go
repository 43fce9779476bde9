package dial_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// connecting is how many sockets of this host wait for a port to answer their SYN; 0 where the system does not tell.
func connecting(t testing.TB, port int) (n int) {
	t.Helper()
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == "02" && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", port)) {
				n++
			}
		}
	}
	return n
}
