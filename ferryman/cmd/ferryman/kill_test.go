package main

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Conformance case 284. What the killed one leaves to the kernel, connections in use among it, must not
// keep the next from its port. Beside other tests a connection of theirs might take it.
func TestServe_ServesAtOnceAfterAKill(t *testing.T) {
	a, waiting, _ := backend(t, "A")
	r := runWith(t, route("/", a))
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
		began := time.Now()
		_, body := get(t, "http://"+r.front+"/")
		require.Equal(t, "A", body)
		status, _ := get(t, "http://"+r.metrics+"/readyz")
		require.Equal(t, 200, status)
		require.Less(t, time.Since(began), 5*time.Second)
		r.process = next
	}
}
