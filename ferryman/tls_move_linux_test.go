package ferryman

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Without a descriptor to move with, a connection stays where its handshake was.
func TestTLS_IsServedOnGoroutinesForWantOfDescriptors(t *testing.T) {
	p, addr := startTLSProxy(t, "loops", testConfig(map[string]string{"/api/": startUpstream(t, answering(hello))}))
	c := dialTLS(t, addr)
	require.Eventually(t, func() bool { _, idle := p.frontend.Connections(); return idle == 1 }, patience, time.Millisecond)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 3
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	status, _ := c.get("/elsewhere")
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	require.Equal(t, 404, status)
	status, _ = c.get("/api/")
	require.Equal(t, 200, status)
	require.NoError(t, <-shutdown(p, patience), "it is drained as others are")
}

// Whoever is on the way from its handshake to a loop when the proxy ends is lost to nobody.
func TestTLS_DrainAndCloseWhileConnectionsMove(t *testing.T) {
	upstream := startUpstream(t, answering(hello))
	for name, end := range map[string]func(t *testing.T, p *Proxy){
		"drain": func(t *testing.T, p *Proxy) { require.NoError(t, <-shutdown(p, patience)) },
		"cut": func(t *testing.T, p *Proxy) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			p.Shutdown(ended)
		},
		"close": func(t *testing.T, p *Proxy) { require.NoError(t, p.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				fds := openDescriptors(t)
				p, addr := startTLSProxy(t, "loops", testConfig(map[string]string{"/": upstream}))
				var served atomic.Int32
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						for comeAndGo(addr) {
							served.Add(1)
						}
					})
				}
				require.Eventually(t, func() bool { return served.Load() > 10 }, patience, time.Millisecond)
				end(t, p)
				wg.Wait()
				active, idle := p.frontend.Connections()
				require.Zero(t, active+idle)
				require.Eventually(t, func() bool { return openDescriptors(t) <= fds }, patience, time.Millisecond)
			}
		})
	}
}

// comeAndGo sends one request over a fresh connection, and returns whether it was answered.
func comeAndGo(addr string) bool {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(c)
	return err == nil && len(b) > 0
}

func openDescriptors(t testing.TB) int {
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}
