package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 10 * time.Second

// made is a pair in PEM: the leaf, the issuer's certificate and the leaf's key.
type made struct{ leaf, issuer, key string }

func makePair(t *testing.T, name string) made {
	t.Helper()
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	certificate := func(name string) (string, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour).Truncate(time.Second)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		require.NoError(t, err)
		return block("CERTIFICATE", der), key
	}
	leaf, key := certificate(name)
	issuer, _ := certificate(name + "'s issuer")
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return made{leaf, issuer, block("PRIVATE KEY", der)}
}

// write saves both files, each as a whole, and returns their names.
func write(t *testing.T, dir, cert, key string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, text := range map[string]string{certFile: cert, keyFile: key} {
		require.NoError(t, os.WriteFile(name+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(name+".new", name))
	}
	return certFile, keyFile
}

func chainLength(p *Pair) int { return len(p.current.Load().parsed.Certificate) }

// Case 313.
func TestLoad_SaysWhatIsWrongWithAFile(t *testing.T) {
	a, b := makePair(t, "a"), makePair(t, "b")
	half := func(s string) string { return s[:len(s)/2] }
	lines := strings.SplitAfter(a.issuer, "\n")
	for name, c := range map[string]struct{ cert, key, want string }{
		"half an issuer":      {a.leaf + half(a.issuer), a.key, "cert.pem:%d: the file ends within the block that begins here"},
		"without a last line": {a.leaf + strings.Join(lines[:len(lines)-2], ""), a.key, "cert.pem:%d: the file ends within"},
		"half in the middle":  {half(a.leaf) + a.issuer, a.key, "cert.pem:1: the block that begins here is damaged"},
		"whole lines of half": {strings.Join(strings.SplitAfter(a.leaf, "\n")[:4], "") + a.issuer, a.key, "cert.pem:1: the block that begins here has no end"},
		"no beginning":        {a.leaf + strings.Join(lines[1:], ""), a.key, "cert.pem:%d: this line is outside of any block"},
		"a torn beginning":    {a.leaf + a.issuer[2:], a.key, "cert.pem:%d: this line is outside of any block"},
		"a line too much":     {a.leaf + "MIIBIjANBgkqhkiG9w0B\n" + a.issuer, a.key, "cert.pem:%d: this line is outside of any block"},
		"NUL bytes":           {a.leaf + strings.Repeat("\x00", 100), a.key, "cert.pem:%d: this line is outside of any block"},
		"bad base64":          {a.leaf + strings.Replace(a.issuer, "MII", "M\x00I", 1), a.key, "cert.pem:%d: the block that begins here is damaged"},
		"no certificate in it": {a.leaf + "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", a.key,
			"cert.pem:%d: this certificate cannot be read"},
		"a key in the chain": {a.leaf + a.key, a.key, `cert.pem:%d: is a block of type "PRIVATE KEY": leave only certificates`},
		"a request":          {"-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n", a.key, `is a block of type "CERTIFICATE REQUEST"`},
		"swapped":            {a.key, a.leaf, `cert.pem:1: is a block of type "PRIVATE KEY"`},
		"empty":              {"", a.key, "cert.pem: holds no certificate"},
		"no PEM":             {"hello, world\n", a.key, "cert.pem: holds no certificate"},
		"half a key":         {a.leaf, half(a.key), "key.pem:1: the file ends within the block"},
		"no key":             {a.leaf, a.issuer, "key.pem: holds no private key"},
		"encrypted":          {a.leaf, strings.ReplaceAll(a.key, "PRIVATE", "ENCRYPTED PRIVATE"), "key.pem:1: is encrypted: take the passphrase off"},
		"another's key":      {a.leaf, b.key, "private key does not match"},
		"issuer first":       {a.issuer + a.leaf, a.key, "before those of its issuers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, t.TempDir(), c.cert, c.key))
			want := strings.Replace(c.want, "%d", "8", 1)
			if strings.Contains(c.want, "%d") {
				want = strings.Replace(c.want, "%d", lineAfter(a.leaf), 1)
			}
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "TLS ")
		})
	}
}

// lineAfter is the number of the line that follows text.
func lineAfter(text string) string { return big.NewInt(int64(strings.Count(text, "\n") + 1)).String() }

func TestLoad_TakesWhatToolsWrite(t *testing.T) {
	a := makePair(t, "a")
	bag := "Bag Attributes\n    localKeyID: 54 69 6D 65\nsubject=CN = a\n\nissuer=CN = a\n"
	for name, c := range map[string]struct{ cert, key string }{
		"plain":           {a.leaf + a.issuer, a.key},
		"byte order mark": {"\xef\xbb\xbf" + a.leaf + a.issuer, "\xef\xbb\xbf" + a.key},
		"CRLF":            {strings.ReplaceAll(a.leaf+a.issuer, "\n", "\r\n"), strings.ReplaceAll(a.key, "\n", "\r\n")},
		"no last newline": {strings.TrimSpace(a.leaf + a.issuer), strings.TrimSpace(a.key)},
		"bag attributes":  {bag + a.leaf + bag + a.issuer, bag + a.key},
		"comments":        {"# mine, -----\n" + a.leaf + "\n\n# theirs\n" + a.issuer + "\n", "# secret\n" + a.key},
		"key parameters":  {a.leaf + a.issuer, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + a.key},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Load(write(t, t.TempDir(), c.cert, c.key))
			require.NoError(t, err)
			require.Equal(t, 2, chainLength(p))
		})
	}
	certFile, _ := write(t, t.TempDir(), a.key+a.leaf+a.issuer, "")
	p, err := Load(certFile, certFile)
	require.NoError(t, err, "one file for both")
	require.Equal(t, 2, chainLength(p))
	require.Equal(t, certFile, p.Name())
	require.WithinDuration(t, time.Now().Add(time.Hour), p.Expires(), time.Minute)
}

// watch watches a pair; reports come one by one.
func watch(t *testing.T, p *Pair) (reports chan error, poke chan struct{}) {
	t.Helper()
	reports, poke = make(chan error, 100), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Watch(ctx, poke, func(err error) { reports <- err }); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return reports, poke
}

func next(t *testing.T, reports chan error) error {
	t.Helper()
	select {
	case err := <-reports:
		return err
	case <-time.After(patience):
		require.Fail(t, "nothing is reported")
		return nil
	}
}

// Case 313. That contents rest is held by internal/filewatch.
func TestWatch_HalfAChainLeavesTheOldOneInUse(t *testing.T) {
	t.Parallel()
	a, b := makePair(t, "a"), makePair(t, "b")
	dir := t.TempDir()
	certFile, keyFile := write(t, dir, a.leaf+a.issuer, a.key)
	p, err := Load(certFile, keyFile)
	require.NoError(t, err)
	reports, _ := watch(t, p)
	write(t, dir, b.leaf+b.issuer, b.key)
	require.NoError(t, next(t, reports))
	require.Equal(t, 2, chainLength(p))
	require.True(t, bytes.Contains(p.current.Load().contents[0], []byte(b.leaf)))

	write(t, dir, a.leaf+a.issuer[:len(a.issuer)/2], a.key)
	require.ErrorContains(t, next(t, reports), "the file ends within the block")
	require.True(t, bytes.Contains(p.current.Load().contents[0], []byte(b.leaf)), "the old one stays in use")
	require.NoError(t, os.Remove(keyFile))
	require.ErrorContains(t, next(t, reports), "TLS ")
	write(t, dir, b.leaf+b.issuer, b.key)
	write(t, dir, a.leaf+a.issuer, a.key)
	for next(t, reports) != nil { // what is in between may be told, too
	}
	require.True(t, bytes.Contains(p.current.Load().contents[0], []byte(a.leaf)))
}

func TestWatch_PokeLooksAtOnceAndSaysNothingNewTwice(t *testing.T) {
	t.Parallel()
	a, b := makePair(t, "a"), makePair(t, "b")
	dir := t.TempDir()
	p, err := Load(write(t, dir, a.leaf, a.key))
	require.NoError(t, err)
	reports, poke := watch(t, p)
	poke <- struct{}{}
	write(t, dir, b.leaf, a.key)
	poke <- struct{}{}
	require.ErrorContains(t, next(t, reports), "does not match")
	poke <- struct{}{}
	poke <- struct{}{}
	write(t, dir, b.leaf, b.key)
	poke <- struct{}{}
	require.NoError(t, next(t, reports))
	require.Empty(t, reports)
}

// What was written between loading and watching is seen.
func TestWatch_SeesWhatChangedBeforeItBegan(t *testing.T) {
	t.Parallel()
	a, b := makePair(t, "a"), makePair(t, "b")
	dir := t.TempDir()
	p, err := Load(write(t, dir, a.leaf, a.key))
	require.NoError(t, err)
	write(t, dir, b.leaf, b.key)
	reports := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go p.Watch(ctx, nil, func(err error) { reports <- err })
	require.NoError(t, next(t, reports))
}
