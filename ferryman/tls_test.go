package ferryman

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// writePair writes a fresh self-signed pair for a name.
func writePair(t testing.TB, certFile, keyFile, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotAfter: time.Now().Add(1000 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
}

// newCertificate loads a fresh pair, and tells where it lies.
func newCertificate(t testing.TB) (cert *Certificate, certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	writePair(t, certFile, keyFile, "one")
	cert, err := LoadCertificate(certFile, keyFile)
	require.NoError(t, err)
	return cert, certFile, keyFile
}

// serveTLS is for start.
func serveTLS(cert *Certificate) func(*Proxy, net.Listener) error {
	return func(p *Proxy, l net.Listener) error { return p.ServeTLS(l, cert) }
}

// startTLSProxy is startProxy over TLS.
func startTLSProxy(t testing.TB, engine string, c config.Config) (p *Proxy, addr string) {
	t.Helper()
	cert, _, _ := newCertificate(t)
	return start(t, engine, c, serveTLS(cert))
}

// startTLS serves a proxy over TLS and returns its address and certificate.
func startTLS(t testing.TB) (addr string, cert *Certificate, certFile, keyFile string) {
	t.Helper()
	cert, certFile, keyFile = newCertificate(t)
	_, addr = start(t, "", testConfig(map[string]string{"/": startUpstream(t, answering(hello))}), serveTLS(cert))
	return addr, cert, certFile, keyFile
}

// dialTLS begins a connection. The handshake comes with the first request.
func dialTLS(t testing.TB, addr string) *rawClient {
	t.Helper()
	c := tls.Client(dial(t, addr).Conn, &tls.Config{InsecureSkipVerify: true})
	return &rawClient{Conn: c, t: t, in: bufio.NewReader(c)}
}

// nameAt is the name in the certificate that a new handshake gets.
func nameAt(t testing.TB, addr string) string {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestTLS_ServesHTTP1(t *testing.T) {
	addr, _, _, _ := startTLS(t)
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for range 2 {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(body))
	}
}

func TestTLS_NewPairServesNewHandshakesOnly(t *testing.T) {
	addr, cert, certFile, keyFile := startTLS(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reports := make(chan error, 10)
	go cert.Watch(ctx, nil, func(err error) { reports <- err })

	old, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer old.Close()
	writePair(t, certFile, filepath.Join(t.TempDir(), "other.pem"), "stranger") // does not match the key
	require.Error(t, <-reports)
	require.Equal(t, "one", nameAt(t, addr), "a mismatched pair leaves the old one in use")
	writePair(t, certFile, keyFile, "two")
	require.NoError(t, <-reports)
	require.Equal(t, "two", nameAt(t, addr))
	io.WriteString(old, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(old), nil)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
}

func TestTLS_BadPairsAreExplained(t *testing.T) {
	dir := t.TempDir()
	c1, k1 := filepath.Join(dir, "c1"), filepath.Join(dir, "k1")
	c2, k2 := filepath.Join(dir, "c2"), filepath.Join(dir, "k2")
	writePair(t, c1, k1, "one")
	writePair(t, c2, k2, "two")
	for _, files := range [][2]string{{c1, k2}, {c1, dir}, {dir, k1}, {c1, filepath.Join(dir, "none")}, {k1, c1}} {
		_, err := LoadCertificate(files[0], files[1])
		require.ErrorContains(t, err, "TLS")
	}
}

func TestTLS_OldVersionsAreRefused(t *testing.T) {
	addr, _, _, _ := startTLS(t)
	_, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	require.Error(t, err)
	_, err = tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"foo"}})
	require.ErrorContains(t, err, "no application protocol")
}

// The limit on readers is one of progress, as it is in plain text.
func TestTLS_SlowReadersGoOnAndStoppedOnesEnd(t *testing.T) {
	const limit, size = 300 * time.Millisecond, 16 << 20
	upstream := startUpstream(t, func(c net.Conn, in *bufio.Reader) {
		http.ReadRequest(in)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		c.Write(make([]byte, size))
	})
	forEachEngine(t, func(t *testing.T, engine string) {
		c := testConfig(map[string]string{"/": upstream})
		c.BodyIdleTimeout = limit
		p, addr := startTLSProxy(t, engine, c)
		get := func() *rawClient {
			c := dialTLS(t, addr)
			c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			return c
		}
		// A reader that a busy machine held up for as long as the limit has been ended rightly, and tries again.
		for heldUp := true; heldUp; {
			slow, begun := get(), time.Now()
			resp, err := http.ReadResponse(slow.in, nil)
			require.NoError(t, err)
			heldUp = false
			longest := time.Duration(0)
			for n, b := 0, make([]byte, size/16); n < size && !heldUp; n += len(b) {
				before := time.Now()
				<-time.After(limit / 5)
				_, err := io.ReadFull(resp.Body, b)
				longest = max(longest, time.Since(before))
				heldUp = err != nil && longest >= limit
				require.True(t, err == nil || heldUp, "after %d bytes: %v", n, err)
			}
			require.True(t, heldUp || time.Since(begun) > 2*limit)
			slow.Close()
		}

		begun := time.Now()
		_, err := http.ReadResponse(get().in, nil)
		require.NoError(t, err)
		require.Eventually(t, func() bool { active, idle := p.frontend.Connections(); return active+idle == 0 }, patience, time.Millisecond)
		require.GreaterOrEqual(t, time.Since(begun), limit)
	})
}
