package echo

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// descriptors is the variable that has the test binary be a server with so many descriptors.
const descriptors = "ECHO_TEST_DESCRIPTORS"

// startChild starts it and returns its address.
func startChild(t *testing.T, limit int) (addr string) {
	t.Helper()
	server := exec.Command(os.Args[0])
	server.Env, server.Stderr = append(os.Environ(), fmt.Sprintf("%s=%d", descriptors, limit)), os.Stderr
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	addr, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(addr)
}

func TestMain(m *testing.M) {
	limit, err := strconv.ParseUint(os.Getenv(descriptors), 10, 64)
	if err != nil {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit})
	}
	if err == nil {
		fmt.Println(l.Addr())
		err = New(Options{Instance: "child"}).ServeData(l)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
