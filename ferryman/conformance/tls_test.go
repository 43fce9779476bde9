package conformance

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
)

// tlsMode runs a body over TLS, on each engine.
func tlsMode(t *testing.T, body func(t *testing.T, m mode)) { forEachMode(t, body, tlsModes()...) }

// raw connects without a handshake.
func (r *rig) raw(t testing.TB) *net.TCPConn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", r.addr, patience)
	require.NoError(t, err)
	_ = nc.SetDeadline(time.Now().Add(patience))
	return nc.(*net.TCPConn)
}

// hello is a ClientHello as crypto/tls writes it.
func hello(t testing.TB, conf *tls.Config) string {
	t.Helper()
	a, b := net.Pipe()
	defer b.Close()
	go func() {
		defer a.Close()
		_ = tls.Client(a, conf).Handshake()
	}()
	_ = b.SetReadDeadline(time.Now().Add(patience))
	br := bufio.NewReader(b)
	head, err := br.Peek(5)
	require.NoError(t, err)
	record := make([]byte, 5+int(head[3])<<8+int(head[4]))
	_, err = io.ReadFull(br, record)
	require.NoError(t, err)
	return string(record)
}

func TestCase272_StalledHandshakesEnd(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m, shortLimits, func(s *setup) { s.cfg.ClientIdleTimeout = time.Minute })
		for _, alpn := range [][]string{{"http/1.1"}, {"h2", "http/1.1"}, nil} {
			ch := hello(t, &tls.Config{ServerName: "x.example", NextProtos: alpn, InsecureSkipVerify: true})
			for _, part := range []string{"", ch[:1], ch[:5], ch[:len(ch)/2], ch} {
				t.Run(fmt.Sprint(alpn, len(part)), func(t *testing.T) {
					t.Parallel()
					start := time.Now()
					nc := r.raw(t)
					defer nc.Close()
					_, err := io.WriteString(nc, part)
					require.NoError(t, err)
					_, err = io.Copy(io.Discard, nc)
					require.True(t, err == nil || isReset(err), "%v", err)
					require.GreaterOrEqual(t, time.Since(start), shortHead*8/10)
				})
			}
			t.Run(fmt.Sprint(alpn, "trickled"), func(t *testing.T) {
				t.Parallel()
				start, done := time.Now(), make(chan struct{})
				nc := r.raw(t)
				defer nc.Close()
				go func() {
					defer close(done)
					for i := range len(ch) {
						if _, err := io.WriteString(nc, ch[i:i+1]); err != nil {
							return
						}
						pause(shortHead / 20)
					}
				}()
				_, err := io.Copy(io.Discard, nc)
				require.True(t, err == nil || isReset(err), "%v", err)
				require.GreaterOrEqual(t, time.Since(start), shortHead*8/10)
				nc.Close()
				<-done
			})
		}
	})
}

func TestCase273_TLSOnThePlaintextPort(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.refusesExactly(t, hello(t, &tls.Config{ServerName: "a", InsecureSkipVerify: true}))
	}, plainModes()...)
}

func TestCase274_EverySNIGetsTheCertificate(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, name := range []string{"", "unknown.example", "FIRST", "first.", "127.0.0.1"} {
			c := r.dialWith(t, &tls.Config{ServerName: name, InsecureSkipVerify: true}, 0)
			c.send("GET / HTTP/1.1\r\nHost: another.example\r\n\r\n")
			c.want(t, "GET", 200)
			c.close()
		}
	})
}

func TestCase275_CloseNotify(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		c.do(t, request{fields: []string{"Connection: close"}})
		c.closedByPeer(t) // crypto/tls reports a missing close_notify as an unexpected end

		// A client that closes without one: a complete request is fine, half a body is never complete.
		c = r.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello")
		r.U[1].awaitStarted(t, 2)
		require.NoError(t, c.tcp.CloseWrite())
		r.U[1].gone(t, r.U[1].started()[1].conn)
		require.Equal(t, 1, r.whole())
	})
}

func TestCase276_Versions(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, v := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
			_, err := r.tryDial(&tls.Config{InsecureSkipVerify: true, MinVersion: v, MaxVersion: v}, 0)
			require.Error(t, err)
		}
		for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c := r.dialWith(t, &tls.Config{InsecureSkipVerify: true, MinVersion: v, MaxVersion: v}, 0)
			require.Equal(t, 200, c.do(t, request{}).status)
			c.close()
		}
		// Only suites that HTTP/2 forbids: nothing, or HTTP/1.1, but never h2 (RFC 9113 9.2.2).
		c, err := r.tryDial(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA}}, 0)
		if err == nil {
			require.NotEqual(t, "h2", c.conn.(*tls.Conn).ConnectionState().NegotiatedProtocol)
		}
	})
}

func TestCase190_ProtocolsOverTLS(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for _, row := range []struct {
			offered []string
			want    string
		}{{[]string{"h2", "http/1.1"}, "h2"}, {[]string{"http/1.1"}, "http/1.1"}, {[]string{"http/1.1", "h2"}, "h2"}, {nil, ""}} {
			c := r.dialWith(t, &tls.Config{InsecureSkipVerify: true, NextProtos: row.offered}, 0)
			got := c.conn.(*tls.Conn).ConnectionState().NegotiatedProtocol
			if len(row.offered) == 2 && row.offered[0] == "http/1.1" {
				require.NotEmpty(t, got, "which of both is the server's choice")
			} else {
				require.Equal(t, row.want, got)
			}
			if got != "h2" {
				require.Equal(t, 200, c.do(t, request{}).status)
			}
			c.close()
		}
		_, err := r.tryDial(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"foo"}}, 0)
		require.ErrorContains(t, err, "no application protocol")
		// The other protocol than the one agreed on.
		c := r.dial(t)
		c.send(h2Preface + h2Settings)
		b, _ := c.end()
		require.True(t, len(b) == 0 || strings.HasPrefix(string(b), "HTTP/1.1 400 ") || strings.HasPrefix(string(b), "HTTP/1.1 505 "), "%q", b)
		c = r.dialWith(t, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, 0)
		c.send(smuggled)
		b, _ = c.end()
		require.False(t, strings.Contains(string(b), "HTTP/1.1 200"), "%q", b)
	})
}

// Cases 243 and 276.
func TestCase243And276_CertificateIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := func(name string, swapKey bool) {
		f, err := makeCert(dir, name)
		require.NoError(t, err)
		for to, from := range map[string]string{"tls.crt": f.certFile, "tls.key": f.keyFile} {
			if to == "tls.key" && swapKey {
				continue
			}
			require.NoError(t, os.Rename(from, dir+"/"+to))
		}
	}
	place("one", false)
	cert, err := ferryman.LoadCertificate(dir+"/tls.crt", dir+"/tls.key")
	require.NoError(t, err)
	r := newRig(t, tlsH1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- r.proxy.ServeTLS(ln, cert) }()
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan struct{})
	poke := make(chan struct{}, 1)
	go func() { defer close(watched); cert.Watch(ctx, poke, func(error) {}) }()
	defer func() { cancel(); <-watched }()
	r.addr = ln.Addr().String()

	name := func(conf *tls.Config) (string, bool) {
		c := r.dialWith(t, conf, 0)
		defer c.close()
		require.Equal(t, 200, c.do(t, request{}).status) // and the session ticket is read
		s := c.conn.(*tls.Conn).ConnectionState()
		return s.PeerCertificates[0].Subject.CommonName, s.DidResume
	}
	sessions := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(4), ServerName: "localhost"}
	old := r.dial(t)
	require.Equal(t, 200, old.do(t, request{}).status)
	got, _ := name(sessions)
	require.Equal(t, "one", got)
	_, resumed := name(sessions)
	require.True(t, resumed, "sessions are resumed")

	place("half", true) // a certificate without its key: the old pair stays in use
	pause(300 * time.Millisecond)
	got, _ = name(&tls.Config{InsecureSkipVerify: true})
	require.Equal(t, "one", got)

	place("two", false)
	eventually(t, func() bool { n, _ := name(&tls.Config{InsecureSkipVerify: true}); return n == "two" }, "the new pair is not used")
	require.Equal(t, 200, old.do(t, request{}).status, "old connections go on")
	_, resumed = name(sessions)
	require.True(t, resumed, "resumption works across a reload of the pair")
	r.shutdown(t)
	require.NoError(t, <-served)
}

func TestCase277_FailedHandshakesAreLoggedWithinBounds(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		before := r.log.count("level=") - r.log.count("level=DEBUG")
		for i := range scaled(200) {
			nc := r.raw(t)
			switch i % 4 {
			case 0:
				_, _ = io.WriteString(nc, "garbage that is no record\r\n\r\n")
			case 1:
				_, _ = io.WriteString(nc, hello(t, &tls.Config{InsecureSkipVerify: true, ServerName: "a"})[:50])
			case 2:
				_ = nc.SetLinger(0)
			case 3:
				_ = tls.Client(nc, &tls.Config{ServerName: "localhost", RootCAs: x509.NewCertPool()}).Handshake()
			}
			nc.Close()
		}
		r.awaitIdle(t)
		require.LessOrEqual(t, r.log.count("level=")-r.log.count("level=DEBUG")-before, 10)
		require.Equal(t, 200, r.get(t, "/").status)
	})
}

func TestCase270_RecordsOfOneByte(t *testing.T) {
	tlsMode(t, func(t *testing.T, m mode) {
		r := newRig(t, m)
		c := r.dial(t)
		q := request{m: "POST", body: "hello", nonce: nonce()}
		for i := range len(q.String()) {
			c.send(q.String()[i : i+1])
		}
		require.Equal(t, q.nonce, c.want(t, "POST", 200).get("X-Nonce"))
		require.Equal(t, http.StatusOK, c.do(t, request{}).status)
	})
}
