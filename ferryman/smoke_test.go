package ferryman

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Bunty9/ferryman/ferryman/config"
	"github.com/stretchr/testify/require"
)

func TestSmoke(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %v %q\n", r.Method, r.RequestURI, r.Header, b)
	}))
	defer up.Close()
	c := config.Default()
	c.Routes = []config.Route{{Prefix: "/", Upstream: up.Listener.Addr().String()}}
	p, err := New(c, Options{Engine: "goroutines"})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go p.Serve(l)
	defer p.Close()
	for i := range 3 {
		resp, err := http.Post("http://"+l.Addr().String()+"/x?y", "text/plain", strings.NewReader(strings.Repeat("x", 10*i*i*i*i*i*i)))
		require.NoError(t, err)
		b, _ := io.ReadAll(resp.Body)
		t.Log(resp.Status, resp.Header, string(b[:min(len(b), 300)]))
	}
	conn, _ := net.Dial("tcp", l.Addr().String())
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /../x HTTP/1.1\r\nHost: a\r\n\r\n")
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	b, err := io.ReadAll(bufio.NewReader(conn))
	t.Log(string(b), err)
	
}

func BenchmarkExchange(b *testing.B) {
	ul, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		for {
			c, err := ul.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 4096)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: x\r\n\r\nhello")
				}
			}()
		}
	}()
	c := config.Default()
	c.Routes = []config.Route{{Prefix: "/", Upstream: ul.Addr().String()}}
	p, err := New(c, Options{Engine: "goroutines"})
	require.NoError(b, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	go p.Serve(l)
	defer p.Close()
	conn, _ := net.Dial("tcp", l.Addr().String())
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n")
		if n, err := conn.Read(buf); err != nil || n < 50 {
			b.Fatal(n, err, string(buf[:n]))
		}
	}
}
