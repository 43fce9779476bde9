package echo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lab is a running server and how to talk to it.
type lab struct {
	*Server
	t           *testing.T
	data, admin string
}

func start(t *testing.T) *lab {
	t.Helper()
	s := New(Options{Instance: "echo-t"})
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return l
	}
	data, admin := listen(), listen()
	done := make(chan error, 2)
	go func() { done <- s.ServeData(data) }()
	go func() { done <- s.ServeAdmin(admin) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
	return &lab{Server: s, t: t, data: data.Addr().String(), admin: admin.Addr().String()}
}

// client is one raw connection to the data port.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (l *lab) dial() *client {
	l.t.Helper()
	c, err := net.Dial("tcp", l.data)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { _ = c.Close() })
	require.NoError(l.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return &client{Conn: c, t: l.t, r: bufio.NewReader(c)}
}

func (c *client) send(raw string) *client {
	c.t.Helper()
	_, err := io.WriteString(c, raw)
	require.NoError(c.t, err)
	return c
}

func (c *client) get(target string) *client {
	c.t.Helper()
	return c.send("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")
}

// answer reads one response; method is the request's.
func (c *client) answer(method string) (*http.Response, string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.r, &http.Request{Method: method})
	require.NoError(c.t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, "echo-t", r.Header.Get(InstanceField), "every answer names its instance")
	return r, string(body)
}

// put sets a fault through the admin port and returns status and body.
func (l *lab) put(body string) (int, string) {
	l.t.Helper()
	return l.ask(http.MethodPut, "/fault", body)
}

func (l *lab) ask(method, path, body string) (int, string) {
	l.t.Helper()
	request, err := http.NewRequest(method, "http://"+l.admin+path, strings.NewReader(body))
	require.NoError(l.t, err)
	r, err := http.DefaultClient.Do(request)
	require.NoError(l.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(l.t, err)
	return r.StatusCode, string(text)
}

func TestEcho_FixedBodyAlsoBehindAPrefix(t *testing.T) {
	c := start(t).dial()
	for _, target := range []string{"/echo", "/svc-a/echo", "/echo?x=1"} {
		r, body := c.get(target).answer("GET")
		require.Equal(t, 200, r.StatusCode)
		require.Equal(t, string(echoBody), body, target)
		require.EqualValues(t, len(echoBody), r.ContentLength)
	}
}

func TestDescribe_ShowsWhatArrivedByteForByte(t *testing.T) {
	c := start(t).dial()
	c.send("POST /a%2Fb/../c?q=%20 HTTP/1.1\r\nHost: Example.TEST\r\nx-LOWER: 1\r\nX-Twice: a\r\nX-Twice:  b \r\nContent-Length: 5\r\n\r\nhello")
	r, body := c.answer("POST")
	require.Equal(t, "application/json", r.Header.Get("Content-Type"))
	d := Description{}
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Equal(t, c.LocalAddr().String(), d.Remote)
	d.Remote = ""
	require.Equal(t, Description{
		Instance: "echo-t", Sequence: 1, Method: "POST", Target: "/a%2Fb/../c?q=%20", Proto: "HTTP/1.1", Host: "Example.TEST",
		Fields:     [][2]string{{"Host", "Example.TEST"}, {"x-LOWER", "1"}, {"X-Twice", "a"}, {"X-Twice", "b"}, {"Content-Length", "5"}},
		BodyLength: 5, BodySHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
	}, d)

	_, body = c.get("/again").answer("GET")
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.EqualValues(t, 2, d.Sequence)
}

func TestDescribe_HashesABodyLargerThanAnyBuffer(t *testing.T) {
	c := start(t).dial()
	const size = 3 << 20
	c.send(fmt.Sprintf("PUT /up HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size))
	c.send(strings.Repeat("x", size))
	_, body := c.answer("PUT")
	d := Description{}
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.EqualValues(t, size, d.BodyLength)
	_, body = c.get("/echo").answer("GET")
	require.Equal(t, string(echoBody), body, "the connection is still in step")
}

func TestDescribe_ReadsAChunkedBodyAndExpect100(t *testing.T) {
	c := start(t).dial()
	c.send("POST /up HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
	line, err := c.r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
	_, err = c.r.ReadString('\n')
	require.NoError(t, err)
	c.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
	_, body := c.answer("POST")
	require.Contains(t, body, `"body_length":5`)
}

func TestBytes_AndChunked_CarryTheAlphabet(t *testing.T) {
	c := start(t).dial()
	for _, n := range []int{0, 1, 30, 65546, 200_000} {
		want := strings.Repeat("abcdefghijklmnopqrstuvwxyz", n/26+1)[:n]
		r, body := c.get(fmt.Sprintf("/bytes/%d", n)).answer("GET")
		require.EqualValues(t, n, r.ContentLength)
		require.True(t, want == body, "bytes/%d", n)
		r, body = c.get(fmt.Sprintf("/x/chunked/%d", n)).answer("GET")
		require.Equal(t, []string{"chunked"}, r.TransferEncoding)
		require.True(t, want == body, "chunked/%d", n)
	}
	r, body := c.send("HEAD /bytes/30 HTTP/1.1\r\nHost: h\r\n\r\n").answer("HEAD")
	require.EqualValues(t, 30, r.ContentLength)
	require.Empty(t, body)
}

func TestStatus_AnswersIt(t *testing.T) {
	c := start(t).dial()
	for _, status := range []int{200, 204, 304, 404, 500, 503, 599} {
		r, _ := c.get(fmt.Sprintf("/status/%d", status)).answer("GET")
		require.Equal(t, status, r.StatusCode)
	}
	for _, target := range []string{"/status/199", "/status/600", "/stream?chunks=x", "/stream?every=-1s", "/stream?chunks=9999999"} {
		r, _ := c.get(target).answer("GET")
		require.Equal(t, 400, r.StatusCode, target)
	}
}

func TestStream_SendsEachLineWhenItIsDue(t *testing.T) {
	c := start(t).dial().get("/stream?chunks=3&every=30ms")
	begin := time.Now()
	r, err := http.ReadResponse(c.r, nil)
	require.NoError(t, err)
	first := make([]byte, 2)
	_, err = io.ReadFull(r.Body, first)
	require.NoError(t, err)
	firstAt := time.Since(begin)
	rest, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, "0\n1\n2\n", string(first)+string(rest))
	require.Less(t, firstAt, time.Since(begin)-40*time.Millisecond, "the first line does not wait for the last")
}

func TestTrailers_FollowTheBody(t *testing.T) {
	c := start(t).dial().get("/trailers")
	r, body := c.answer("GET")
	require.Equal(t, string(echoBody), body)
	require.Len(t, r.Trailer.Get(ChecksumTrailer), 64)
	require.Empty(t, r.Header.Get(ChecksumTrailer))
}

func TestRefuse_WhatIsNoRequestGetsA400WithTheInstance(t *testing.T) {
	r, _ := start(t).dial().send("GET / HTTP/1.1\r\nHost : x\r\n\r\n").answer("GET")
	require.Equal(t, 400, r.StatusCode)
}
