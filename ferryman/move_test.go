package ferryman

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mirroring answers each request with its path and its body.
func mirroring(c net.Conn, in *bufio.Reader) {
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		answer := r.URL.Path + " " + string(body)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
	}
}

// talk sends requests of several kinds, some of them two at once, and wants each one's own answer.
func talk(c net.Conn, who int) error {
	in := bufio.NewReader(c)
	for i := range 50 {
		var requests strings.Builder
		var want []string
		for j := range i%3 + 1 {
			path, body := fmt.Sprintf("/%d/%d/%d", who, i, j), ""
			if j == 1 {
				body = strings.Repeat(path, 200*(i%4))
			}
			fmt.Fprintf(&requests, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
			want = append(want, path+" "+body)
		}
		if _, err := io.WriteString(c, requests.String()); err != nil {
			return err
		}
		for _, w := range want {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				return fmt.Errorf("request %d: %w", i, err)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != w {
				return fmt.Errorf("%d: %.80q instead of %.80q: %v", resp.StatusCode, got, w, err)
			}
		}
	}
	return nil
}

// shuffle has connections move between the loops all the time, until what it returns is called: nil where
// there are none.
func shuffle(p *Proxy) (stop func()) {
	loops, ok := p.engine.(interface{ Work(int) })
	if !ok {
		return nil
	}
	over := make(chan struct{})
	var moving sync.WaitGroup
	moving.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(500 * time.Microsecond):
				loops.Work(n%2 + 1)
			}
		}
	})
	return func() { close(over); moving.Wait() }
}

// Connections move between event loops as the load changes: no answer is lost or goes astray, and
// what is counted stays right. Then a drain comes while they move.
func TestMove_RequestsAreServedWhereverTheirConnectionGoes(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) {
			serve := startProxy
			connect := func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }
			if secure {
				serve = startTLSProxy
				connect = func(addr string) (net.Conn, error) {
					return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
				}
			}
			p, addr := serve(t, "", testConfig(map[string]string{"/": startUpstream(t, mirroring)}))
			stop := shuffle(p)
			if stop == nil {
				return // one executor
			}
			var talking sync.WaitGroup
			for i := range 16 {
				talking.Go(func() {
					c, err := connect(addr)
					if err == nil {
						defer c.Close()
						c.SetDeadline(time.Now().Add(patience))
						err = talk(c, i)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			talking.Wait()
			require.Eventually(t, func() bool { a, i := p.frontend.Connections(); return a+i == 0 }, patience, time.Millisecond)

			for i := range 16 {
				talking.Go(func() {
					c, err := connect(addr)
					for err == nil {
						c.SetDeadline(time.Now().Add(patience))
						err = talk(c, i)
					}
					if ne, ok := err.(net.Error); ok && ne.Timeout() {
						t.Errorf("a connection was forgotten: %v", err)
					}
				})
			}
			require.Eventually(t, func() bool { a, i := p.frontend.Connections(); return a+i >= 8 }, patience, time.Millisecond)
			require.NoError(t, <-shutdown(p, patience))
			talking.Wait()
			stop()
		})
	}
}
