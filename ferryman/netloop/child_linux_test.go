package netloop_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// child names what this binary is to do instead of running tests.
const child = "NETLOOP_TEST_CHILD"

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(child), " ")
	switch role {
	case "starve":
		starve(argument)
	case "hold":
		hold(argument)
	case "load":
		load(argument)
	default:
		os.Exit(m.Run())
	}
}

// startChild runs this binary in a role until the test ends. It returns its output, line by
// line, and its process.
func startChild(t testing.TB, role string) (*bufio.Scanner, *os.Process) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), child+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close() // which ends it
		cmd.Wait()
	})
	return bufio.NewScanner(stdout), cmd.Process
}
