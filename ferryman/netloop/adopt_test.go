package netloop_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// adopted returns both ends of a connection of each kind that Adopt takes.
func adopted(t *testing.T, g *netloop.GoroutineEngine, kind string) (netloop.Conn, net.Conn) {
	t.Helper()
	if kind == "pipe" {
		near, far := net.Pipe()
		return g.Adopt(near), far
	}
	l := listen(t)
	var far net.Conn = dial(t, l.Addr().String())
	near, err := l.Accept()
	require.NoError(t, err)
	if kind == "tcp" {
		return g.Adopt(near), far
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	server := tls.Server(g.Adopt(near), &tls.Config{Certificates: []tls.Certificate{cert}})
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	failed := make(chan error, 1)
	go func() { failed <- client.Handshake() }()
	require.NoError(t, server.Handshake())
	require.NoError(t, receive(t, failed, "the handshake"))
	return g.Adopt(server), client
}

func forEachKind(t *testing.T, kinds []string, body func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			g := netloop.Goroutines(netloop.Options{})
			defer g.Close()
			c, far := adopted(t, g, kind)
			body(t, g, c, far)
		})
	}
}

var allKinds = []string{"tcp", "tls", "pipe"}

func TestAdopt_AwaitsEveryKindOfConnection(t *testing.T) {
	forEachKind(t, allKinds, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		awaited := result[error](g, c.Await)
		go io.WriteString(far, "hello")
		require.NoError(t, receive(t, awaited, "Await"))
		require.NoError(t, c.Await())
		require.False(t, c.Quiet())
		b := make([]byte, 5)
		_, err := io.ReadFull(c, b)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))

		require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		require.True(t, isTimeout(c.Await()))
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		go far.Close()
		require.NoError(t, c.Await())
		_, err = c.Read(b)
		require.Equal(t, io.EOF, err)
	})
}

func TestAdopt_AbortEndsEveryKindOfConnection(t *testing.T) {
	forEachKind(t, allKinds, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		awaited := result[error](g, c.Await)
		wrote := result(g, func() error { _, err := c.Write(tooMuch); return err })
		c.Abort()
		assertClosed(t, receive(t, awaited, "Await"))
		assertClosed(t, receive(t, wrote, "Write"))
		_, err := c.Read(make([]byte, 1))
		assertClosed(t, err)
		require.NoError(t, c.Close())
	})
}

func TestAdopt_DetachGivesBackWhatWasReadAhead(t *testing.T) {
	forEachKind(t, allKinds, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		go func() {
			io.WriteString(far, "hello")
			far.Close()
		}()
		require.NoError(t, c.Await())
		plain, err := c.Detach()
		require.NoError(t, err)
		got, err := io.ReadAll(plain)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		require.NoError(t, plain.Close())
	})
}

func TestAdopt_GuardSeesThroughTLS(t *testing.T) {
	forEachKind(t, []string{"tcp", "tls"}, func(t *testing.T, g *netloop.GoroutineEngine, c netloop.Conn, far net.Conn) {
		victim, _ := dialled(t, g)
		fallen := result[error](g, victim.Await)
		require.False(t, c.Gone())
		c.Guard(victim)
		go io.WriteString(far, "unread")
		far.Close()
		assertClosed(t, receive(t, fallen, "the victim"))
		require.True(t, c.Gone())
	})
}

func TestAdopt_OnAClosedEngineFailsAtOnce(t *testing.T) {
	g := netloop.Goroutines(netloop.Options{})
	require.NoError(t, g.Close())
	near, far := net.Pipe()
	c := g.Adopt(near)
	assertClosed(t, c.Await())
	_, err := far.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.NoError(t, c.Close())
}
