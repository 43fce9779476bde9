package ferryman

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shutdown runs Shutdown with a limit and returns its result when it is there.
func shutdown(p *Proxy, limit time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		done <- p.Shutdown(ctx)
	}()
	return done
}

func TestDrain_IdleConnectionsCloseAtOnce(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		p, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, answering(hello))}))
		used, fresh, half := dial(t, addr), dial(t, addr), dial(t, addr)
		used.get("/")
		half.send("GET / HT")
		require.Eventually(t, func() bool { active, idle := p.frontend.Connections(); return active == 0 && idle == 3 }, patience, time.Millisecond)
		require.NoError(t, <-shutdown(p, patience), "they do not last until the limit")
		used.requireClosed()
		fresh.requireClosed()
		_, err := net.Dial("tcp", addr)
		require.Error(t, err)
	})
}

func TestDrain_InFlightRequestIsAnsweredWithClose(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		asked, release := make(chan struct{}), make(chan struct{})
		p, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, func(c net.Conn, in *bufio.Reader) {
			http.ReadRequest(in)
			close(asked)
			<-release
			io.WriteString(c, hello)
		})}))
		c := dial(t, addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-asked
		done := shutdown(p, patience)
		require.Eventually(t, p.frontend.Draining, patience, time.Millisecond)
		w := newRecorder()
		r, _ := http.NewRequest("GET", "/readyz", nil)
		p.MetricsHandler().ServeHTTP(w, r)
		require.Equal(t, 503, w.status)
		close(release)
		resp, err := http.ReadResponse(c.in, nil)
		require.NoError(t, err)
		require.True(t, resp.Close)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))
		c.Close()
		require.NoError(t, <-done)
	})
}

func TestDrain_WhatDoesNotEndIsCutAndCounted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		asked := make(chan struct{})
		p, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, func(c net.Conn, in *bufio.Reader) {
			http.ReadRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
			close(asked)
			io.Copy(io.Discard, c)
		})}))
		c := dial(t, addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-asked
		require.EqualError(t, <-shutdown(p, 50*time.Millisecond), "drain: 1 connections were cut")
		resp, err := http.ReadResponse(c.in, nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		require.Error(t, err, "the cut is visible")
	})
}

func TestDrain_ReloadAndServeAfterwards(t *testing.T) {
	c := testConfig(map[string]string{"/": startUpstream(t, answering(hello))})
	p, _ := startProxy(t, "goroutines", c)
	require.NoError(t, <-shutdown(p, patience))
	require.ErrorIs(t, p.Reload(c), ErrClosed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, p.Serve(l))
	require.NoError(t, p.Shutdown(context.Background()))
}
