//go:build unix

package labenv

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func startTestLab(t *testing.T) (root string, s *State) {
	t.Helper()
	root, err := Root()
	require.NoError(t, err)
	dir := t.TempDir()
	bin, err := Build(t.Context(), root, filepath.Join(dir, "bin"), "")
	require.NoError(t, err)
	ports, err := FreePorts()
	require.NoError(t, err)
	s, err = StartNative(t.Context(), root, Native{Dir: dir, Binaries: bin, Ports: ports})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.End(context.Background()) })
	return root, s
}

// eventually polls what must be true within twenty seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.NoError(t, Until(t.Context(), 20*time.Second, what, func(context.Context) error {
		if ok() {
			return nil
		}
		return errors.New("not yet")
	}))
}

func TestNative_EveryFaultIsSeenAndHealed(t *testing.T) {
	root, s := startTestLab(t)
	circuit := func(name string) string {
		page, err := ReadPage(t.Context(), s.Metrics+"/metrics")
		require.NoError(t, err)
		e, err := s.Echo(name)
		require.NoError(t, err)
		return page.Circuit(e.Upstream)
	}
	for i, kind := range Kinds {
		name := Upstreams[i%len(Upstreams)]
		e, err := s.Echo(name)
		require.NoError(t, err)
		require.NoError(t, s.Fault(t.Context(), kind, name, ""), kind)
		require.NotEqual(t, "ok", s.Condition(t.Context(), e), kind)
		eventually(t, kind+" opens the circuit", func() bool {
			_, _, _ = Ask(t.Context(), http.MethodGet, s.Proxy+"/svc-"+name+"/echo", "")
			return circuit(name) == "open"
		})
		require.NoError(t, s.Heal(t.Context(), name), kind)
		require.Equal(t, "ok", s.Condition(t.Context(), e), kind)
		eventually(t, "the circuit closes after "+kind, func() bool { return circuit(name) == "closed" })
	}
	require.NoError(t, s.Ready(t.Context(), 10*time.Second))

	memory, known := s.Process("ferryman").Memory()
	require.True(t, !known || memory > 1<<20)
	require.NoError(t, s.End(t.Context()))
	for _, p := range s.Processes {
		require.False(t, p.Alive(), p.Name)
	}
	_ = root
}

func TestNative_AStoppedProcessEndsToo(t *testing.T) {
	p := Process{Name: "sleeper", Args: []string{"sleep", "600"}, Log: filepath.Join(t.TempDir(), "log")}
	require.NoError(t, p.launch())
	require.True(t, p.Alive())
	s := &State{Mode: ModeNative, Echoes: []Echo{{Name: "a"}}, Processes: []Process{p}}
	s.Processes[0].Name = "echo-a"
	require.NoError(t, s.Fault(t.Context(), "pause", "a", ""))
	require.True(t, p.Alive())
	require.NoError(t, s.End(t.Context()))
	require.False(t, p.Alive())
}

func TestProcess_AnotherWithTheSameIDIsNotTouched(t *testing.T) {
	p := Process{Name: "other", PID: os.Getpid(), Born: "long ago"}
	require.False(t, p.Alive())
	require.NoError(t, p.kill(t.Context())) // or this test ends here
}

func TestNative_AProgramThatEndsIsToldAtOnce(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	dir := t.TempDir()
	liar := filepath.Join(dir, "liar")
	require.NoError(t, os.WriteFile(liar, []byte("#!/bin/sh\necho no such luck >&2\nexit 1\n"), 0o755))
	ports, err := FreePorts()
	require.NoError(t, err)
	_, err = StartNative(t.Context(), root, Native{Dir: dir, Binaries: Binaries{Ferryman: liar, Echo: liar}, Ports: ports})
	require.ErrorContains(t, err, "ferryman: it has ended; ferryman.log: no such luck")
}
