package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownAddr is an address whose port nobody gets by chance: it is below those that the kernel hands out.
func ownAddr(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			require.NoError(t, l.Close())
			return l.Addr().String()
		}
	}
}

// Conformance case 284. What the killed one leaves to the kernel, connections in use among it, must not
// keep the next from its port.
func TestServe_ServesAtOnceAfterAKill(t *testing.T) {
	a, waiting, _ := backend(t, "A")
	r := runWith(t, route("/", a), "--bind", ownAddr(t), "--metrics-bind", ownAddr(t))
	idle, err := net.Dial("tcp", r.front)
	require.NoError(t, err)
	defer idle.Close()
	go fetch("GET", "http://"+r.front+"/wait")
	<-waiting
	for range 3 {
		require.NoError(t, r.cmd.Process.Kill())
		<-r.exited
		next := launch(t, "--config", r.config, "--bind", r.front, "--metrics-bind", r.metrics)
		next.find("listening")
		_, body := get(t, "http://"+r.front+"/")
		require.Equal(t, "A", body)
		status, _ := get(t, "http://"+r.metrics+"/readyz")
		require.Equal(t, 200, status)
		r.process = next
	}
}
