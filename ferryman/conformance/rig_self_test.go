package conformance

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An oracle that cannot fail proves nothing. Here each one is shown what it must not let pass.

// verdictT is a testing.TB that notes failures.
type verdictT struct {
	testing.TB
	failed []string
}

func (v *verdictT) Helper()             {}
func (v *verdictT) Logf(string, ...any) {}
func (v *verdictT) Errorf(format string, args ...any) {
	v.failed = append(v.failed, fmt.Sprintf(format, args...))
}
func (v *verdictT) FailNow()     { panic(v) }
func (v *verdictT) Failed() bool { return len(v.failed) > 0 }

// objects tells whether f fails its test.
func objects(t *testing.T, f func(t testing.TB)) (failed bool) {
	v := &verdictT{TB: t}
	defer func() {
		if e := recover(); e != nil && e != v {
			panic(e)
		}
		failed = v.Failed()
	}()
	f(v)
	return v.Failed()
}

const goodForwarded = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: http\r\nVia: 1.1 ferryman\r\n"

func TestRig_NothingSmuggledObjects(t *testing.T) {
	log := func(raw string) bool {
		u := &upstream{name: "U"}
		u.conns = []*uconn{{u: u, log: []byte(raw)}}
		return objects(t, func(t testing.TB) { u.nothingSmuggled(t) })
	}
	require.False(t, log(goodForwarded+"\r\n"+goodForwarded+"Content-Length: 5\r\n\r\nhello"))
	require.False(t, log(goodForwarded+"\r\n"+goodForwarded+"Content-Length: 5\r\n\r\nhe"), "a cut request at the end is an aborted one")
	for _, bad := range []string{
		strings.Replace(goodForwarded, "/", "/SMUGGLED", 1) + "\r\n",
		goodForwarded + "\r\n" + smuggled,
		strings.Replace(goodForwarded, "Host: a\r\n", "", 1) + "\r\n",
		goodForwarded + "Host: b\r\n\r\n",
		goodForwarded + "X-Forwarded-For: 6.6.6.6\r\n\r\n",
		goodForwarded + "TE: trailers\r\n\r\n",
		goodForwarded + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		goodForwarded + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		goodForwarded + "Content-Length: 3\r\n\r\nabcd",
		goodForwarded + "Transfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\n\r\n",
		goodForwarded + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-T: 1\r\n\r\n",
		goodForwarded + "X : 1\r\n\r\n", goodForwarded + "X: a\n\r\n", goodForwarded + "X: a\rb\r\n\r\n", goodForwarded + " fold: 1\r\n\r\n",
		strings.Replace(goodForwarded, "1.1", "1.0", 1) + "\r\n", "garbage\r\n\r\n",
	} {
		require.True(t, log(bad), "%q", bad)
	}
}

func TestRig_NothingPoisonedObjects(t *testing.T) {
	got := func(sent, got string) bool {
		return objects(t, func(t testing.TB) { (&client{sent: []byte(sent), got: []byte(got)}).nothingPoisoned(t) })
	}
	require.False(t, got("X-Nonce: n1.", "X-Nonce: n1."))
	require.True(t, got("X-Nonce: n1.", "X-Nonce: n2."))
	require.True(t, got("", poison))
}

func TestRig_OwnReplyObjects(t *testing.T) {
	reply := func(raw string) bool {
		m, err := newWireReader(strings.NewReader(raw)).response("GET")
		require.NoError(t, err)
		return objects(t, func(t testing.TB) { ownReply(t, m) })
	}
	const good = "HTTP/1.1 404 Not Found\r\nDate: now\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 8\r\n\r\nno route"
	require.False(t, reply(good))
	for _, bad := range [][2]string{{"Date: now\r\n", ""}, {"Date: now\r\n", "Date: now\r\nDate: now\r\n"}, {"text/plain; charset=utf-8", "text/html"},
		{"Content-Length: 8\r\n", ""}, {"no route", "EOF EOF!"}, {"now", "127.0.0.1"}, {"Date", "Server: x\r\nDate"}} {
		require.True(t, reply(strings.Replace(good, bad[0], bad[1], 1)), "%q", bad)
	}
}

func TestRig_RefusedObjects(t *testing.T) {
	answer := func(raw string, then func(net.Conn)) bool {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		go func() {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(nc, raw)
			then(nc)
		}()
		r := &rig{t: t, addr: ln.Addr().String()}
		return objects(t, func(t testing.TB) { r.dial(t).refused(t, 400) })
	}
	gentle := func(nc net.Conn) { nc.Close() }
	const good = "HTTP/1.1 400 Bad Request\r\nDate: now\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"
	require.False(t, answer(good, gentle))
	require.True(t, answer(strings.Replace(good, "400", "404", 1), gentle))
	require.True(t, answer(strings.Replace(good, "close", "keep-alive", 1), gentle))
	require.True(t, answer(good+"more", gentle))
	require.True(t, answer(good, func(nc net.Conn) {
		pause(quiet)
		_ = nc.(*net.TCPConn).SetLinger(0)
		nc.Close()
	}), "a reset may destroy the reply")
}

func TestRig_ResidueIsSeen(t *testing.T) {
	u := newUpstream(t, "U1")
	defer u.close()
	r := &rig{t: t, id: "residue", addr: "127.0.0.1:1"}
	for i := range r.U {
		r.U[i] = u
	}
	require.Zero(t, r.goroutines())
	require.Empty(t, r.sockets())
	stop := make(chan struct{})
	started := make(chan struct{})
	pprof.Do(context.Background(), pprof.Labels("rig", r.id), func(context.Context) {
		go func() { close(started); <-stop }()
	})
	<-started
	require.Equal(t, 1, r.goroutines())
	close(stop)
	nc, err := net.Dial("tcp", u.addr)
	require.NoError(t, err)
	require.Len(t, r.sockets(), 1)
	nc.Close()
	require.Empty(t, r.sockets())
}

func TestRig_StrictReader(t *testing.T) {
	for _, bad := range []string{"HTTP/1.1 200\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\n\r\n", "HTTP/1.1 200 OK\r\nX : 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n"} {
		_, err := newWireReader(strings.NewReader(bad)).response("GET")
		require.ErrorIs(t, err, errSyntax, "%q", bad)
	}
	for _, cut := range []string{"HTTP/1.1 2", "HTTP/1.1 200 OK\r\nX: 1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"} {
		_, err := newWireReader(strings.NewReader(cut)).response("GET")
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%q", cut)
	}
}
