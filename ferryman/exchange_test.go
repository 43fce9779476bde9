package ferryman

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const hello = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 5\r\n\r\nhello"

func TestExchange_ForwardsAndAnswers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		_, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, answering(hello))}))
		c := dial(t, addr)
		for range 3 {
			status, body := c.get("/x?y")
			require.Equal(t, 200, status)
			require.Equal(t, "hello", body)
		}
	})
}

// The outcome table of the specification, first part: what ends before an upstream answers.
func TestExchange_OutcomesWithoutAnAnswer(t *testing.T) {
	closes := func(c net.Conn, in *bufio.Reader) { http.ReadRequest(in) }
	garbles := func(c net.Conn, in *bufio.Reader) {
		http.ReadRequest(in)
		io.WriteString(c, "HTTP/9.9 200 OK\r\n\r\n")
	}
	hangs := func(c net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) }
	for _, tc := range []struct {
		name     string
		play     script
		request  string
		status   int
		body     string
		failures int // of this outcome, in a row, that open the circuit; 0: none ever does
	}{
		{"closed before the head", closes, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 502, "bad gateway", 3},
		{"malformed head", garbles, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 502, "bad gateway", 3},
		{"silence", hangs, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 504, "gateway timeout", 3},
		{"silence after a body", hangs, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 504, "gateway timeout", 0},
		{"upgrade", hangs, "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 501, "not implemented", 0},
		{"connect", hangs, "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501, "not implemented", 0},
		{"bad chunk", hangs, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n", 400, "bad request", 0},
		{"dot segment", hangs, "GET /../ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad request", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, engine string) {
				c := testConfig(map[string]string{"/": startUpstream(t, tc.play)})
				c.UpstreamTimeout = 100 * time.Millisecond
				p, addr := startProxy(t, engine, c)
				for range 4 {
					client := dial(t, addr)
					client.send(tc.request)
					status, body := client.answer()
					if state := circuit(p); state != 0 {
						require.Positive(t, tc.failures)
						return
					}
					require.Equal(t, tc.status, status)
					require.Equal(t, tc.body, body)
				}
				require.Zero(t, tc.failures, "the circuit stayed closed")
			})
		})
	}
}

// circuit is the state of a proxy's only upstream.
func circuit(p *Proxy) int {
	for _, u := range p.snapshot.Load().upstreams {
		return u.State()
	}
	return -1
}

func TestExchange_OpenCircuitAnswersWithoutTheUpstream(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine string) {
		var asked atomic.Int32
		c := testConfig(map[string]string{"/": startUpstream(t, func(c net.Conn, in *bufio.Reader) {
			http.ReadRequest(in)
			asked.Add(1)
		})})
		_, addr := startProxy(t, engine, c)
		for range c.FailureThreshold {
			status, _ := dial(t, addr).get("/")
			require.Equal(t, 502, status)
		}
		client := dial(t, addr)
		client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(client.in, nil)
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, "30", resp.Header.Get("Retry-After"))
		require.EqualValues(t, c.FailureThreshold, asked.Load())
	})
}

func TestExchange_RepeatsOnlyOnReusedConnections(t *testing.T) {
	for _, tc := range []struct {
		name, request string
		status        int
		asked         int32 // requests that the upstream read in all
	}{
		{"GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, 3},
		{"PUT without a body", "PUT / HTTP/1.1\r\nHost: a\r\n\r\n", 200, 3},
		{"POST", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", 502, 2},
		{"PUT with a body", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 502, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, engine string) {
				var asked atomic.Int32
				// Each connection answers once and reads a second request without answering it.
				_, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, func(c net.Conn, in *bufio.Reader) {
					for range 2 {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						io.Copy(io.Discard, r.Body)
						if asked.Add(1)%2 == 1 {
							io.WriteString(c, hello)
						}
					}
				})}))
				client := dial(t, addr)
				status, _ := client.get("/")
				require.Equal(t, 200, status)
				client.send(tc.request)
				status, _ = client.answer()
				require.Equal(t, tc.status, status)
				require.Equal(t, tc.asked, asked.Load())
			})
		})
	}
}

// sparing is the script of an upstream that answers without allocating.
func sparing(c net.Conn, _ *bufio.Reader) {
	buf, answer := make([]byte, 4096), []byte(hello)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// exchangeOnce returns a function that sends one request through a proxy and reads the answer.
func exchangeOnce(t testing.TB, engine string) func() {
	_, addr := startProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, sparing)}))
	client := dial(t, addr)
	client.SetDeadline(time.Time{})
	return asking(t, client)
}

// exchangeOnceTLS is exchangeOnce over TLS.
func exchangeOnceTLS(t testing.TB, engine string) func() {
	_, addr := startTLSProxy(t, engine, testConfig(map[string]string{"/": startUpstream(t, sparing)}))
	client, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return asking(t, client)
}

func asking(t testing.TB, client net.Conn) func() {
	request := []byte("GET /x HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n")
	buf := make([]byte, 4096)
	return func() {
		if _, err := client.Write(request); err != nil {
			t.Fatal(err)
		}
		if n, err := client.Read(buf); err != nil || !bytes.HasSuffix(buf[:n], []byte("hello")) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	for _, engine := range engines() {
		for name, start := range map[string]func(testing.TB, string) func(){"plain": exchangeOnce, "TLS": exchangeOnceTLS} {
			b.Run(engine+" "+name, func(b *testing.B) {
				once := start(b, engine)
				b.ReportAllocs()
				for b.Loop() {
					once()
				}
			})
		}
	}
}
