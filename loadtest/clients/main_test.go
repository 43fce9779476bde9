//go:build clients

package clients

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// What all tests share: it is made once and only read.
var (
	work      string // a folder that is removed at the end
	root      string // the repository
	cert, key string // files: a pair for localhost and 127.0.0.1
	large     string // files of random bytes
	medium    string
)

const (
	largeSize  = 100 << 20
	mediumSize = 20 << 20
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "ferryman-clients-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	flag.Parse()
	if runtime.GOMAXPROCS(0) < 4 { // they wait more than they compute
		if err := flag.Set("test.parallel", "4"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		return 1
	}
	return m.Run()
}

func prepare() (err error) {
	if root, err = labenv.Root(); err != nil {
		return err
	}
	cert, key = filepath.Join(work, "cert.pem"), filepath.Join(work, "key.pem")
	if err := writePair(cert, key); err != nil {
		return err
	}
	large, medium = filepath.Join(work, "large"), filepath.Join(work, "medium")
	if err := writeRandom(medium, mediumSize); err != nil {
		return err
	}
	return writeRandom(large, largeSize)
}

// build makes ferryman once for each set of flags.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	name := filepath.Join(work, fmt.Sprint("ferryman", flags))
	making, _ := builds.LoadOrStore(name, sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", name}, append(flags, "./cmd/ferryman")...)...)
		cmd.Dir, cmd.Env = filepath.Join(root, "ferryman"), append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %v: %w: %s", flags, err, out)
		}
		return nil
	}))
	require.NoError(t, making.(func() error)())
	return name
}

var builds sync.Map

func writeRandom(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	source, block := mathrand.NewChaCha8([32]byte{}), make([]byte, 1<<20)
	for ; size > 0; size -= int64(len(block)) {
		_, _ = source.Read(block)
		if _, err := f.Write(block[:min(size, int64(len(block)))]); err != nil {
			return err
		}
	}
	return f.Close()
}

// writePair writes a certificate that signs itself.
func writePair(cert, key string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}
