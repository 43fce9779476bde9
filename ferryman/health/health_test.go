package health_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/health"
)

// readStatus is a strict enough reader of a status line.
func readStatus(r io.Reader) (int, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("head: %w", err)
	}
	var minor, status int
	if n, err := fmt.Sscanf(line, "HTTP/1.%1d %3d", &minor, &status); n != 2 {
		return 0, fmt.Errorf("malformed head: %v", err)
	}
	return status, nil
}

func TestChecker_ReportsAnswersUnder500AsUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		bufio.NewReader(c).ReadString('\n')
		io.WriteString(c, "HTTP/1.1 404 Not Found\r\n\r\n")
	}()
	results := make(chan error, 1)
	c := health.New(l.Addr().String(), "ferryman/test", readStatus, func(err error) { results <- err })
	c.Start(20*time.Millisecond, 10*time.Second)
	defer c.Stop()
	require.NoError(t, <-results)
}
