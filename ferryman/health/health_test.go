package health_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/health"
)

var errMalformed = errors.New("malformed head")

// readStatus is a reader of heads that is strict enough for these tests.
func readStatus(r io.Reader) (int, error) {
	b := bufio.NewReader(r)
	line, err := b.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errMalformed, err)
	}
	var minor, status int
	if n, _ := fmt.Sscanf(line, "HTTP/1.%1d %3d", &minor, &status); n != 2 {
		return 0, errMalformed
	}
	for line != "\r\n" {
		if line, err = b.ReadString('\n'); err != nil {
			return 0, fmt.Errorf("%w: %w", errMalformed, err)
		}
	}
	return status, nil
}

// upstream is a raw listener that hands each connection, one after the other, to a script.
type upstream struct {
	addr     string
	accepted atomic.Int32
}

func newUpstream(t *testing.T, script func(c *net.TCPConn)) *upstream {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	u := &upstream{addr: l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			u.accepted.Add(1)
			script(c)
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return u
}

// readHead reads a request up to its empty line.
func readHead(c net.Conn) string {
	var head strings.Builder
	for b := bufio.NewReader(c); ; {
		line, err := b.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String()
		}
	}
}

func answer(bytes string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		readHead(c)
		io.WriteString(c, bytes)
		c.CloseWrite()
		io.Copy(io.Discard, c) // until the checker closes
	}
}

// checkOnce returns the result of the first check of addr.
func checkOnce(t *testing.T, addr string, timeout time.Duration) error {
	t.Helper()
	results := make(chan error, 100)
	c := health.New(addr, "ferryman/test", readStatus, func(err error) { results <- err })
	c.Start(10*time.Millisecond, timeout) // the first check comes soon, those after it do not matter
	defer c.Stop()
	return await(t, results)
}

func await[V any](t *testing.T, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		require.Fail(t, "nothing came within 20 seconds")
		panic("unreachable")
	}
}

// Conformance case 224.
func TestChecker_AnyAnswerUnder500IsUp(t *testing.T) {
	for status, up := range map[int]bool{
		200: true, 204: true, 301: true, 302: true, 401: true, 404: true, 429: true, 499: true,
		500: false, 502: false, 503: false, 599: false, 600: false, 999: false,
	} {
		u := newUpstream(t, answer(fmt.Sprintf("HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n", status)))
		err := checkOnce(t, u.addr, 10*time.Second)
		if up {
			require.NoError(t, err, status)
		} else {
			require.EqualError(t, err, fmt.Sprintf("answer has status %d", status))
		}
	}
}

// Conformance case 224.
func TestChecker_WhatIsNoAnswerIsDown(t *testing.T) {
	for name, script := range map[string]func(*net.TCPConn){
		"malformed":       answer("HTTP/2 200\r\n\r\n"),
		"not HTTP at all": answer("220 smtp.example ready\r\n"),
		"cut short":       answer("HTTP/1.1 200 OK\r\nContent-Le"),
		"empty":           answer(""),
		"closed at once":  func(*net.TCPConn) {},
		"reset":           func(c *net.TCPConn) { readHead(c); c.SetLinger(0) },
	} {
		require.Error(t, checkOnce(t, newUpstream(t, script).addr, 10*time.Second), name)
	}
}

func TestChecker_RefusedConnectionIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, checkOnce(t, l.Addr().String(), 10*time.Second), syscall.ECONNREFUSED)
}

// Conformance case 223, against a real socket; the times are in the tests with fake time.
func TestChecker_UpstreamThatHangsIsDown(t *testing.T) {
	for name, script := range map[string]func(*net.TCPConn){
		"after the connect": func(c *net.TCPConn) { io.Copy(io.Discard, c) },
		"in the head": func(c *net.TCPConn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			io.Copy(io.Discard, c)
		},
	} {
		err := checkOnce(t, newUpstream(t, script).addr, 20*time.Millisecond)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout, name)
		require.True(t, timeout.Timeout(), name)
	}
}

func TestChecker_TricklingAnswerDoesNotOutlastTheTimeout(t *testing.T) {
	u := newUpstream(t, func(c *net.TCPConn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
		for err := error(nil); err == nil; _, err = c.Write([]byte("x")) {
			<-time.After(time.Millisecond)
		}
	})
	require.Error(t, checkOnce(t, u.addr, 50*time.Millisecond))
}

func TestChecker_ReadsTwoLargeHeadsAtMost(t *testing.T) {
	u := newUpstream(t, func(c *net.TCPConn) {
		readHead(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(c, "X-Filler: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
				return
			}
		}
	})
	var read int
	results := make(chan error, 100)
	c := health.New(u.addr, "ferryman/test", func(r io.Reader) (int, error) {
		b, err := io.ReadAll(r)
		read = len(b)
		return 0, errors.Join(errMalformed, err)
	}, func(err error) { results <- err })
	c.Start(20*time.Second, 10*time.Second)
	c.Configure(10*time.Millisecond, 10*time.Second)
	require.ErrorIs(t, await(t, results), errMalformed)
	c.Stop()
	require.Equal(t, 128<<10, read)
}

// Conformance case 225.
func TestChecker_SendsExactlyOneSmallRequestPerConnection(t *testing.T) {
	requests := make(chan string, 100)
	u := newUpstream(t, func(c *net.TCPConn) {
		head := readHead(c)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		rest, _ := io.ReadAll(c) // nothing, until the checker closes
		requests <- head + string(rest)
	})
	c := health.New(u.addr, "ferryman/1.2.3", readStatus, func(error) {})
	c.Start(10*time.Millisecond, 5*time.Second)
	defer c.Stop()
	for range 3 {
		require.Equal(t, "GET /health HTTP/1.1\r\nHost: "+u.addr+"\r\nUser-Agent: ferryman/1.2.3\r\nConnection: close\r\n\r\n", await(t, requests))
	}
	require.GreaterOrEqual(t, u.accepted.Load(), int32(3), "a connection of its own for each check")
}

// Conformance case 224.
func TestChecker_FollowsNoRedirect(t *testing.T) {
	elsewhere := newUpstream(t, answer("HTTP/1.1 200 OK\r\n\r\n"))
	u := newUpstream(t, answer("HTTP/1.1 302 Found\r\nLocation: http://"+elsewhere.addr+"/\r\nContent-Length: 0\r\n\r\n"))
	require.NoError(t, checkOnce(t, u.addr, 10*time.Second))
	require.Zero(t, elsewhere.accepted.Load())
}
