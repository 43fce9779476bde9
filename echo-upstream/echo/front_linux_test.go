package echo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const plainGet = "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"

// serveOn runs the data port of a server on l, and returns where it is.
func serveOn(t *testing.T, s *Server, l net.Listener) string {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.ServeData(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.NoError(t, <-done)
		require.Zero(t, s.openNow.Load())
	})
	return l.Addr().String()
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// told is all that a server answers to pieces, each sent when the bytes before it have been taken, until it
// closes the connection or has nothing more to say.
func told(t *testing.T, addr string, pieces ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	for _, p := range pieces {
		_, err = io.WriteString(c, p)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return taken(t, c) }, 10*time.Second, time.Millisecond)
	}
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	return regexp.MustCompile(`Date: [^\r]*`).ReplaceAllString(string(all), "Date: -")
}

// taken reports whether the peer has received all that was sent on c.
func taken(t *testing.T, c net.Conn) bool {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var left int
	require.NoError(t, raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }))
	require.NoError(t, err)
	return left == 0
}

// Behind a listener that is not TCP's there are no loops, so the data server answers everything: what a
// client sees must be the same.
func TestFront_AnswersAsTheDataServerDoes(t *testing.T) {
	loops := serveOn(t, New(Options{Instance: "x"}), listenTCP(t))
	plain := serveOn(t, New(Options{Instance: "x"}), struct{ net.Listener }{listenTCP(t)})
	for _, pieces := range [][]string{
		{plainGet},
		{plainGet, plainGet, plainGet},
		{plainGet + plainGet + plainGet},
		{plainGet + "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + plainGet},
		{"GET /echo HTTP/1.0\r\nHost: h\r\n\r\n"},
		{"GET /echo HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", plainGet},
		{"GET /ec", "ho HTTP/1.1\r\nHost: h\r\n", "\r\n" + plainGet},
		{plainGet + "GET /ec", "ho HTTP/1.1\r\nHost: h\r\n\r\n"},
		{plainGet + "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab", "c" + plainGet},
		{plainGet, "HEAD /echo HTTP/1.1\r\nHost: h\r\n\r\n" + plainGet},
		{plainGet, "GET /bytes/5 HTTP/1.1\r\nHost: h\r\n\r\n", plainGet},
		{plainGet, "GET /echo HTTP/1.1\r\nHost : h\r\n\r\n"},
		{"GET /health HTTP/1.1\r\nHost: h\r\n\r\n" + plainGet},
		{"GET /echo HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{"GET /echo HTTP/1.1\r\nHost:\r\n\r\n"},
		{"GET /echo HTTP/1.1\r\nHost: [::1\r\n\r\n"},
		{"GET /echo HTTP/1.1\r\nHost: h/x?y#z\r\n\r\n"},
		{"GET x/echo HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"GET */echo HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"GET /echo HTTP/1.1\r\nHost: h\r\nTrailer: Content-Length\r\n\r\n"},
		{""},
	} {
		require.Equal(t, told(t, plain, pieces...), told(t, loops, pieces...), "%q", pieces)
	}
}

func TestFront_FaultsMeetConnectionsThatLoopsHave(t *testing.T) {
	l := start(t)
	c := l.dial()
	for range 3 {
		r, _ := c.get("/echo").answer("GET")
		require.Equal(t, 200, r.StatusCode)
	}
	l.put(`{"error_rate":1}`)
	r, _ := c.get("/echo").answer("GET")
	require.Equal(t, 503, r.StatusCode)
	l.put(`{}`)
	r, _ = c.get("/echo").answer("GET")
	require.Equal(t, 200, r.StatusCode)
	require.EqualValues(t, 4, l.answers[echoEndpoint][200].Load())
	require.EqualValues(t, 1, l.opened.Load())
}

// More answers than the sockets hold: the loop goes on with others, and this client gets all of them.
func TestFront_AClientThatReadsLateGetsEverything(t *testing.T) {
	l := start(t)
	const requests = 100_000
	late := l.dial()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(late, bytes.NewReader(bytes.Repeat([]byte(plainGet), requests)))
		sent <- err
	}()
	l.until("the answers fill the sockets", func() bool {
		before := l.answers[echoEndpoint][200].Load()
		r, _ := l.dial().get("/echo").answer("GET") // others are served
		return r.StatusCode == 200 && before > 1000 && l.answers[echoEndpoint][200].Load() == before+1
	})
	for range requests {
		_, body := late.answer("GET")
		require.Equal(t, string(echoBody), body)
	}
	require.NoError(t, <-sent)
}

func TestFront_ConnectionsAreCountedWhereverTheyAre(t *testing.T) {
	l := start(t)
	begun := runtime.NumGoroutine()
	var all []*client
	for i := range 60 {
		c := l.dial()
		target := "/echo"
		if i%3 == 0 {
			target = fmt.Sprintf("/bytes/%d", i)
		}
		r, _ := c.get(target).answer("GET")
		require.Equal(t, 200, r.StatusCode)
		all = append(all, c)
	}
	require.EqualValues(t, 60, l.openNow.Load())
	require.Less(t, runtime.NumGoroutine()-begun, 40, "those of the loops have no goroutine")
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	l.until("none is left", func() bool { return l.openNow.Load() == 0 })
}

func TestFront_AStopAnswersWhatIsThereAndEndsIdleConnections(t *testing.T) {
	s := New(Options{Instance: "x"})
	l := listenTCP(t)
	done := make(chan error, 1)
	go func() { done <- s.ServeData(l) }()
	var idle []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, plainGet)
		require.NoError(t, err)
		b := make([]byte, 4096)
		n, err := c.Read(b)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(b[:n]), string(echoBody)))
		idle = append(idle, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx))
	require.NoError(t, s.Shutdown(ctx))
	require.NoError(t, <-done)
	for _, c := range idle {
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	require.Zero(t, s.openNow.Load())
	_, err := net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}

func TestFront_WithoutDescriptorsItServesWhomItHasAndThenTheOthers(t *testing.T) {
	addr := startChild(t, 40)
	var all []net.Conn
	for range 80 { // the kernel takes those that the server does not
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = io.WriteString(c, plainGet)
		require.NoError(t, err)
		all = append(all, c)
	}
	read := func(c net.Conn) error {
		b := make([]byte, 4096)
		n, err := c.Read(b)
		if err == nil && !strings.HasSuffix(string(b[:n]), string(echoBody)) {
			return fmt.Errorf("it answered %q", b[:n])
		}
		return err
	}
	for _, c := range all[:20] {
		require.NoError(t, read(c))
	}
	last := all[79]
	require.NoError(t, last.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	require.ErrorIs(t, read(last), os.ErrDeadlineExceeded, "there must be more than the server can take")
	require.NoError(t, last.SetReadDeadline(time.Now().Add(20*time.Second)))
	for _, c := range all[20:79] {
		require.NoError(t, all[0].Close())
		all = all[1:]
		require.NoError(t, read(c))
	}
	require.NoError(t, read(last))
}

// A read stops at an urgent byte (RFC 6093), and what is behind it is no new event.
func TestFront_ReadsOnBehindAnUrgentByte(t *testing.T) {
	l := start(t)
	c := l.dial()
	raw, err := c.Conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		cork := func(on int) error { return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, on) }
		err = errors.Join(cork(1), unix.Sendto(int(fd), []byte(plainGet), 0, nil), unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil),
			unix.Sendto(int(fd), []byte(plainGet), 0, nil), cork(0))
	}))
	require.NoError(t, err)
	for range 2 {
		_, body := c.answer("GET")
		require.Equal(t, string(echoBody), body)
	}
}
